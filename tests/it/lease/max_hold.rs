//! The bound of renewal.

use std::time::{Duration, Instant};

use cache_lock::{LockGuard, LockManager, LostReason};
use test_support::{Direction, Fault, wait_until};

use super::{EXPIRE, RENEWED, extensions, proxied};
use crate::common::fleet::{Fleet, PATIENT, guarded, loss, on_both_stores};

on_both_stores!(hold_ends_at_its_bound, bound_of_one_lease_is_one_lease);

async fn hold_ends_at_its_bound(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let max_hold = 2 * EXPIRE;
    let mut renewed = false;
    let body = async |lock: &LockGuard| {
        let held_from = Instant::now();
        loop {
            let (now, remaining) = (Instant::now(), lock.remaining());
            assert!(now + remaining <= held_from + max_hold, "it would be held for too long");
            renewed |= now + remaining > held_from + EXPIRE;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let error = here.run("job", &RENEWED.max_hold(max_hold), body).await;
    let error = error.expect_err("the body has no end");
    assert_eq!(loss(&error), Some(LostReason::MaxHold));
    assert!(renewed, "until then it was renewed");
    drop(there.acquire("job", &PATIENT).await.expect("it is free"));
}

async fn bound_of_one_lease_is_one_lease(fleet: Fleet) {
    let locks = fleet.manager().await;
    let expire = Duration::from_millis(200);
    let guard = locks.acquire("job", &PATIENT.expire(expire).max_hold(expire)).await;
    assert_eq!(guard.expect("free").lost().await, LostReason::MaxHold);
    if let Some(server) = fleet.server() {
        assert_eq!(extensions(server), 0);
    }
}

/// What the server keeps does not outlast the bound either, by more than the one request takes
/// that extended it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn record_ends_at_bound() {
    const EXPIRE_LONG: Duration = Duration::from_secs(9);
    const ATTEMPT: Duration = Duration::from_secs(1);
    guarded(async {
        let server = test_support::RedisServer::start();
        let builder = LockManager::builder().attempt_timeout(ATTEMPT);
        let locks = builder.connect(&server.url()).await.expect("the server is there");
        // Renewed once, after 3 s: for no longer than the 6.3 s that are left.
        let max_hold = EXPIRE_LONG + Duration::from_millis(300);
        let options = PATIENT.expire(EXPIRE_LONG).max_hold(max_hold);
        let _guard = locks.acquire("job", &options).await.expect("free");
        let held_from = Instant::now();
        wait_until("it is renewed", || extensions(&server) > 0);
        let now = Instant::now();
        let left = server.cli(&["PTTL", "job"]).parse().map(Duration::from_millis);
        assert!(now + left.expect("it has an end") <= held_from + max_hold + ATTEMPT);
    })
    .await;
}

/// A request that waits for its connection is sent later than its lease was reckoned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_renewal_does_not_pass_bound() {
    guarded(async {
        let (server, proxy, locks) = proxied().await;
        let expire = Duration::from_secs(6);
        let max_hold = expire + Duration::from_millis(500);
        let options = PATIENT.expire(expire).max_hold(max_hold);
        let guard = locks.acquire("job", &options).await.expect("free");
        let held_from = Instant::now();
        // The connection that renews is opened for the first renewal.
        proxy.set(Direction::Replies, Fault::Delay(Duration::from_millis(250)));
        wait_until("it is renewed", || {
            extensions(&server) > 0 && (locks.in_hand().tasks == 0 || guard.is_lost())
        });
        let (now, remaining) = (Instant::now(), guard.remaining());
        assert!(now + remaining > held_from + expire, "it was renewed");
        assert!(now + remaining <= held_from + max_hold, "{:?}", now + remaining - held_from);
    })
    .await;
}
