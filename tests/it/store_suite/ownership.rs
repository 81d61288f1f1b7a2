//! No manager extends or releases a lock of another.

use std::time::Duration;

use cache_lock::{LockError, LockManager, LostReason, ReleaseOutcome};
use test_support::{RedisServer, wait_until};

use crate::common::fleet::{Fleet, PATIENT, SHORT_LEASE, guarded, loss, on_both_stores};

const HOUR: Duration = Duration::from_secs(3600);

on_both_stores!(
    late_release_leaves_next_holder_alone,
    late_drop_leaves_next_holder_alone,
    late_extension_leaves_next_holder_alone,
    release_after_end_is_quiet,
    extension_makes_lease_longer,
    extension_never_makes_lease_shorter,
    extension_has_limits,
);

async fn late_release_leaves_next_holder_alone(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let late = here.acquire("job", &SHORT_LEASE).await.expect("free");
    let next = there.acquire("job", &PATIENT).await.expect("the lease before ends");
    assert_eq!(late.release().await.expect("no failure"), ReleaseOutcome::AlreadyExpired);
    assert!(here.try_acquire("job", &PATIENT).await.expect("no failure").is_none());
    assert_eq!(next.release().await.expect("no failure"), ReleaseOutcome::Released);
}

async fn late_drop_leaves_next_holder_alone(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let late = here.acquire("job", &SHORT_LEASE).await.expect("free");
    let next = there.acquire("job", &PATIENT).await.expect("the lease before ends");
    drop(late);
    wait_until("the drop has done its work", || here.in_hand().tasks == 0);
    assert!(here.try_acquire("job", &PATIENT).await.expect("no failure").is_none());
    assert_eq!(next.release().await.expect("no failure"), ReleaseOutcome::Released);
}

async fn late_extension_leaves_next_holder_alone(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let late = here.acquire("job", &SHORT_LEASE).await.expect("free");
    let next = there.acquire("job", &PATIENT).await.expect("the lease before ends");
    let error = late.extend(HOUR).await.expect_err("it is over");
    assert_eq!(loss(&error), Some(LostReason::Expired));
    assert_eq!(late.remaining(), Duration::ZERO);
    assert!(!next.is_lost());
    if let Some(server) = fleet.server() {
        assert!(pttl(server, "job") <= 60_000, "the next holder's lease is as it was");
    }
}

async fn release_after_end_is_quiet(fleet: Fleet) {
    let locks = fleet.manager().await;
    let guard = locks.acquire("job", &SHORT_LEASE).await.expect("free");
    guard.lost().await;
    if let Some(server) = fleet.server() {
        wait_until("the record is gone", || server.cli(&["EXISTS", "job"]) == "0");
    } else {
        // There the record stays until a request looks at it.
        drop(locks.acquire("job", &PATIENT).await.expect("the lease before ends"));
    }
    assert_eq!(guard.release().await.expect("no failure"), ReleaseOutcome::AlreadyExpired);
    assert_eq!(fleet.records(), 0);
}

async fn extension_makes_lease_longer(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let guard = here.acquire("job", &SHORT_LEASE.expire(HOUR / 60)).await.expect("free");
    guard.extend(HOUR).await.expect("held");
    assert!(guard.remaining() > HOUR / 2, "{:?}", guard.remaining());
    if let Some(server) = fleet.server() {
        assert!(pttl(server, "job") > 1_800_000);
    }
    assert!(there.try_acquire("job", &PATIENT).await.expect("no failure").is_none());
}

async fn extension_never_makes_lease_shorter(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let guard = here.acquire("job", &SHORT_LEASE.expire(HOUR)).await.expect("free");
    guard.extend(Duration::from_millis(100)).await.expect("held");
    assert!(guard.remaining() > HOUR / 2, "{:?}", guard.remaining());
    if let Some(server) = fleet.server() {
        assert!(pttl(server, "job") > 1_800_000);
    }
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert!(there.try_acquire("job", &PATIENT).await.expect("no failure").is_none());
    assert!(!guard.is_lost());
}

async fn extension_has_limits(fleet: Fleet) {
    let locks = fleet.manager().await;
    let guard = locks.acquire("job", &PATIENT.max_hold(2 * HOUR)).await.expect("free");
    for duration in [Duration::ZERO, Duration::from_millis(99), 25 * HOUR, 3 * HOUR] {
        let error = guard.extend(duration).await.expect_err("out of range");
        let LockError::InvalidOption { option, value, .. } = error else { panic!("{error}") };
        assert_eq!((option, value), ("extend", duration));
    }
    assert!(!guard.is_lost() && guard.remaining() <= HOUR / 60);
    guard.extend(HOUR).await.expect("within the limits");
}

/// As an operator, or another client, may do it while a holder is sure of its lock.
#[tokio::test]
async fn overwritten_record_is_left_alone() {
    guarded(async {
        let server = RedisServer::start();
        let locks = LockManager::connect(&server.url()).await.expect("the server is there");
        let overwrite = || server.cli(&["SET", "job", "foreign", "PX", "60000"]);
        let untouched = || {
            assert_eq!(server.cli(&["GET", "job"]), "foreign");
            assert!(pttl(&server, "job") <= 60_000);
        };

        let guard = locks.acquire("job", &PATIENT).await.expect("free");
        overwrite();
        let error = guard.extend(HOUR).await.expect_err("it is a foreign lock");
        assert_eq!(loss(&error), Some(LostReason::Gone));
        assert!(guard.is_lost());
        untouched();
        assert_eq!(guard.release().await.expect("no failure"), ReleaseOutcome::AlreadyExpired);
        untouched();

        server.cli(&["DEL", "job"]);
        let guard = locks.acquire("job", &PATIENT).await.expect("free");
        overwrite();
        assert_eq!(guard.release().await.expect("no failure"), ReleaseOutcome::AlreadyExpired);
        untouched();

        server.cli(&["DEL", "job"]);
        let guard = locks.acquire("job", &PATIENT).await.expect("free");
        overwrite();
        drop(guard);
        wait_until("the drop has done its work", || locks.in_hand().tasks == 0);
        untouched();
    })
    .await;
}

#[tokio::test]
async fn extension_never_makes_record() {
    guarded(async {
        let server = RedisServer::start();
        let locks = LockManager::connect(&server.url()).await.expect("the server is there");
        let guard = locks.acquire("job", &PATIENT).await.expect("free");
        server.cli(&["DEL", "job"]);
        let error = guard.extend(HOUR).await.expect_err("it is gone");
        assert_eq!(loss(&error), Some(LostReason::Gone));
        assert_eq!(server.cli(&["EXISTS", "job"]), "0");
        // Once is enough: what was lost stays lost, though it could be had again.
        assert_eq!(loss(&guard.extend(HOUR).await.expect_err("lost")), Some(LostReason::Gone));
        assert_eq!(server.cli(&["EXISTS", "job"]), "0");
    })
    .await;
}

fn pttl(server: &RedisServer, key: &str) -> i64 {
    server.cli(&["PTTL", key]).parse().expect("it is a number")
}
