//! A lease is extended for as long as it is held, and no longer.

use std::{sync::Arc, time::Duration};

use cache_lock::{LockGuard, LockKey, LockManager, LostReason, ReleaseOutcome};
use test_support::{RedisServer, wait_until};
use tokio::{task::JoinSet, time::sleep};

use super::{EXPIRE, RENEWED, extensions};
use crate::common::cases::at_once;
use crate::common::fleet::{Fleet, PATIENT, SHORT_LEASE, guarded, loss, on_both_stores};

on_both_stores!(
    body_longer_than_its_lease_keeps_it,
    without_renewal_lease_ends,
    extension_by_hand_counts,
    extension_by_hand_and_renewal_go_together,
    many_leases_stay_held,
    leases_that_end_while_they_are_renewed_leave_nothing,
);

async fn body_longer_than_its_lease_keeps_it(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let body = async |lock: &LockGuard| {
        sleep(3 * EXPIRE / 2).await;
        assert!(!lock.is_lost());
        there.try_acquire("job", &PATIENT).await.expect("no failure").is_none()
    };
    assert!(here.run("job", &RENEWED, body).await.expect("held to the end"), "exclusive");
    assert!(there.try_acquire("job", &PATIENT).await.expect("no failure").is_some());
}

async fn without_renewal_lease_ends(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let body = async |_: &LockGuard| std::future::pending::<()>().await;
    let error = here.run("job", &SHORT_LEASE, body).await.expect_err("the body has no end");
    assert_eq!(loss(&error), Some(LostReason::Expired));
    there.acquire("job", &PATIENT).await.expect("free").release().await.expect("no failure");
}

async fn extension_by_hand_counts(fleet: Fleet) {
    let locks = fleet.manager().await;
    let guard = locks.acquire("job", &RENEWED.renew(false)).await.expect("free");
    guard.extend(2 * EXPIRE).await.expect("held");
    sleep(EXPIRE).await;
    assert!(!guard.is_lost(), "its first end is past");
    assert_eq!(guard.lost().await, LostReason::Expired, "and its second one is noticed");
}

async fn extension_by_hand_and_renewal_go_together(fleet: Fleet) {
    let locks = fleet.manager().await;
    let guard = locks.acquire("job", &RENEWED).await.expect("free");
    guard.extend(2 * EXPIRE).await.expect("held");
    assert!(guard.remaining() > EXPIRE);
    sleep(5 * EXPIRE / 2).await;
    assert!(!guard.is_lost(), "renewal goes on from where the extension ends");
    assert_eq!(guard.release().await.expect("no failure"), ReleaseOutcome::Released);
}

async fn many_leases_stay_held(fleet: Fleet) {
    const LEASES: usize = 2000;
    // On a busy machine it takes its time to renew so many.
    let expire = 3 * EXPIRE;
    let locks = fleet.manager().await;
    let mut acquiring = JoinSet::new();
    for number in 0..LEASES {
        let locks = locks.clone();
        acquiring.spawn(async move {
            let key = LockKey::new("item").part(number);
            locks.acquire(key, &PATIENT.expire(expire)).await.expect("free")
        });
    }
    let guards = acquiring.join_all().await;
    // Those that are being looked at are out for that moment.
    wait_until("all are looked after", || locks.in_hand().leases == LEASES);
    sleep(3 * expire / 2).await;
    let lost = guards.iter().filter(|guard| guard.is_lost()).count();
    assert_eq!((lost, fleet.records()), (0, LEASES));
    drop(guards);
    wait_until("nothing is in hand", || {
        let in_hand = locks.in_hand();
        (in_hand.leases, in_hand.tasks, in_hand.timers) == (0, 0, 0)
    });
    assert_eq!(fleet.records(), 0);
}

/// Releases at all moments of a renewal.
async fn leases_that_end_while_they_are_renewed_leave_nothing(fleet: Fleet) {
    let locks = Arc::new(fleet.manager().await);
    let options = PATIENT.expire(Duration::from_millis(150));
    let mut tasks = JoinSet::new();
    for number in 0..200_u64 {
        let locks = Arc::clone(&locks);
        tasks.spawn(async move {
            let key = LockKey::new("item").part(number);
            let guard = locks.acquire(key, &options).await.expect("free");
            sleep(Duration::from_micros(45_000 + number * 100)).await;
            if number % 2 == 0 {
                guard.release().await.expect("no failure");
            }
        });
    }
    tasks.join_all().await;
    wait_until("nothing is in hand", || {
        let in_hand = locks.in_hand();
        (in_hand.leases, in_hand.tasks, in_hand.timers) == (0, 0, 0)
    });
    assert_eq!(fleet.records(), 0);
}

#[test]
fn renewal_ends_with_release() {
    at_once([false, true], async |drops| {
        guarded(async {
            let server = RedisServer::start();
            let locks = LockManager::connect(&server.url()).await.expect("the server is there");
            let guard = locks.acquire("job", &RENEWED).await.expect("free");
            wait_until("it is renewed", || extensions(&server) > 0);
            if drops {
                drop(guard);
            } else {
                guard.release().await.expect("no failure");
            }
            wait_until("it is released", || locks.in_hand().tasks == 0);
            server.cli(&["CONFIG", "RESETSTAT"]);
            sleep(EXPIRE).await;
            assert_eq!(server.calls("evalsha"), 0, "no request for a released lock");
            assert_eq!(locks.in_hand().leases, 0);
        })
        .await;
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn record_that_is_gone_is_noticed() {
    guarded(async {
        let server = RedisServer::start();
        let locks = LockManager::connect(&server.url()).await.expect("the server is there");
        let body = async |_: &LockGuard| {
            server.cli(&["DEL", "job"]);
            std::future::pending::<()>().await;
        };
        // So long that its end cannot be what is noticed.
        let options = PATIENT.expire(Duration::from_secs(5));
        let error = locks.run("job", &options, body).await.expect_err("the body has no end");
        assert_eq!(loss(&error), Some(LostReason::Gone));
        assert_eq!(server.cli(&["EXISTS", "job"]), "0", "it is not made again");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_mismatch_is_final() {
    guarded(async {
        let server = RedisServer::start();
        let locks = LockManager::connect(&server.url()).await.expect("the server is there");
        let guard = locks.acquire("job", &RENEWED).await.expect("free");
        let token = server.cli(&["GET", "job"]);
        server.cli(&["SET", "job", "foreign", "PX", "600000"]);
        assert_eq!(guard.lost().await, LostReason::Gone);
        assert_eq!(server.cli(&["GET", "job"]), "foreign");
        // Even if the record were ours again.
        server.cli(&["SET", "job", &token, "PX", "600000"]);
        server.cli(&["CONFIG", "RESETSTAT"]);
        sleep(EXPIRE).await;
        assert_eq!(guard.lost().await, LostReason::Gone);
        drop(guard);
        sleep(Duration::from_millis(100)).await;
        assert_eq!(server.calls("evalsha"), 0, "nothing is asked for what is lost");
    })
    .await;
}
