//! A server that cannot be reached for a while, or at all.

use std::time::Duration;

use cache_lock::{LockGuard, LockManager, LockOptions, LostReason, ReleaseOutcome};
use test_support::{Data, RedisServer, wait_until};

use super::{RENEWED, extensions, proxied};
use crate::common::fleet::{PATIENT, guarded, loss};

/// Long enough for several tries of a renewal.
const LONG: LockOptions = PATIENT.expire(Duration::from_secs(6));

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewal_that_fails_is_tried_again() {
    guarded(async {
        let (server, proxy, locks) = proxied().await;
        let guard = locks.acquire("job", &LONG).await.expect("free");
        let before = proxy.accepted();
        proxy.refuse();
        wait_until("several tries have failed", || proxy.accepted() >= before + 3);
        assert_eq!(extensions(&server), 0);
        proxy.pass();
        wait_until("one has come through", || extensions(&server) > 0);
        assert!(!guard.is_lost());
        wait_until("the renewal has ended", || locks.in_hand().tasks == 0);
        assert_eq!(guard.release().await.expect("no failure"), ReleaseOutcome::Released);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_may_freeze_for_while() {
    guarded(async {
        let server = RedisServer::start();
        let builder = LockManager::builder().attempt_timeout(Duration::from_millis(200));
        let locks = builder.connect(&server.url()).await.expect("the server is there");
        let guard = locks.acquire("job", &LONG).await.expect("free");
        server.stop();
        wait_until("a renewal has begun", || locks.in_hand().tasks > 0);
        // For longer than one try.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(!guard.is_lost());
        server.cont();
        wait_until("the renewal has ended", || locks.in_hand().tasks == 0);
        assert!(!guard.is_lost() && extensions(&server) > 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_may_restart_with_its_data() {
    guarded(async {
        let server = RedisServer::start();
        let locks = LockManager::connect(&server.url()).await.expect("the server is there");
        let guard = locks.acquire("job", &LONG).await.expect("free");
        server.restart(Data::Keep);
        // It has forgotten the scripts, and the connections.
        wait_until("it is renewed", || extensions(&server) > 0);
        assert!(!guard.is_lost());
        assert_eq!(guard.release().await.expect("no failure"), ReleaseOutcome::Released);
    })
    .await;
}

/// A server that has lost its data answers so, and the holder need not wait for its lease to end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_lost_its_data_is_noticed() {
    guarded(async {
        let server = RedisServer::start();
        let locks = LockManager::connect(&server.url()).await.expect("the server is there");
        let guard = locks.acquire("job", &LONG).await.expect("free");
        server.restart(Data::Lose);
        assert_eq!(guard.lost().await, LostReason::Gone);
    })
    .await;
}

/// The server is silent all the time: nothing but the clock of this process ends the lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_server_costs_lease_at_its_end() {
    guarded(async {
        let (_server, proxy, locks) = proxied().await;
        let body = async |_: &LockGuard| {
            proxy.swallow();
            std::future::pending::<()>().await;
        };
        let error = locks.run("job", &RENEWED, body).await.expect_err("the body has no end");
        assert_eq!(loss(&error), Some(LostReason::Expired));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_server_costs_lease_at_its_end() {
    guarded(async {
        let server = RedisServer::start();
        let locks = LockManager::connect(&server.url()).await.expect("the server is there");
        let guard = locks.acquire("job", &RENEWED).await.expect("free");
        server.kill();
        assert_eq!(guard.lost().await, LostReason::Expired);
        assert!(guard.is_lost());
        assert_eq!(guard.remaining(), Duration::ZERO);
    })
    .await;
}

/// The wait for the loss ends though nothing else runs on the waiter's runtime, and its timers are
/// never looked at.
#[tokio::test]
async fn loss_is_noticed_on_runtime_without_timers() {
    let server = RedisServer::start();
    let waiting = std::thread::spawn({
        let url = server.url();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
            runtime.expect("a runtime").block_on(async {
                let locks = LockManager::connect(&url).await.expect("the server is there");
                let guard = locks.acquire("job", &RENEWED.renew(false)).await.expect("free");
                guard.lost().await
            })
        }
    });
    wait_until("the loss is noticed", || waiting.is_finished());
    assert_eq!(waiting.join().expect("no panic"), LostReason::Expired);
}
