//! Statistics and health checks.

use std::time::{Duration, Instant};

use cache_lock::{LockError, LockManager, LockOptions, LockStats};
use test_support::{RedisServer, wait_until};

use crate::common::fleet::{Fleet, PATIENT, SHORT_LEASE, on_both_stores};

on_both_stores!(how_calls_end_is_counted, guard_knows_how_long_it_was_waited_for, store_is_there);

async fn how_calls_end_is_counted(fleet: Fleet) {
    let locks = fleet.manager().await;
    let guard = locks.acquire("job", &PATIENT).await.expect("it is free");
    let soon = LockOptions::new().timeout(Duration::from_millis(10));
    let error = locks.acquire("job", &soon).await.expect_err("it is held");
    assert!(error.is_contended(), "{error}");
    guard.release().await.expect("the store answers");

    let guard = locks.acquire("job", &SHORT_LEASE).await.expect("it is free");
    wait_until("the lease is over", || guard.is_lost());
    drop(guard);

    let LockStats { acquired, contended, failed, lost, .. } = locks.stats();
    assert_eq!((acquired, contended, failed, lost), (2, 1, 0, 1));
}

async fn guard_knows_how_long_it_was_waited_for(fleet: Fleet) {
    let locks = fleet.manager().await;
    let guard = locks.acquire("job", &PATIENT).await.expect("it is free");
    let begun = Instant::now();
    let second = locks.acquire("job", &PATIENT);
    let second = tokio::join!(second, async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        drop(guard);
    });
    let waited = second.0.expect("its turn has come").waited();
    assert!(waited >= Duration::from_millis(30) && waited <= begun.elapsed(), "{waited:?}");
}

async fn store_is_there(fleet: Fleet) {
    let locks = fleet.manager().await;
    locks.ping().await.expect("it answers");
    assert_eq!(fleet.records(), 0, "nothing is left of it");
    locks.shutdown().await;
    assert!(matches!(locks.ping().await, Err(LockError::ShutDown)));
}

#[tokio::test]
async fn server_that_has_gone_does_not_answer() {
    let server = RedisServer::start();
    let locks = LockManager::connect(&server.url()).await.expect("it runs");
    locks.ping().await.expect("it answers");
    drop(server);
    let error = locks.ping().await.expect_err("it does not");
    assert!(matches!(error, LockError::Ping { .. }), "{error}");
}

#[tokio::test]
async fn servers_that_cannot_be_asked_are_counted() {
    let locks = LockManager::builder().connect_lazy("redis://127.0.0.1:1").expect("the URL is one");
    let error =
        locks.try_acquire("job", &LockOptions::new()).await.expect_err("there is no server");
    assert!(matches!(error, LockError::Backend { .. }), "{error}");
    assert_eq!(locks.stats().failed, 1);
}
