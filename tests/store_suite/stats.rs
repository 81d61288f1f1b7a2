//! What a manager counts.

use std::time::Duration;

use cache_lock::{LockError, LockManager, LockOptions, LockStats};
use test_support::wait_until;

use crate::fleet::{Fleet, PATIENT, SHORT_LEASE, on_both_stores};

on_both_stores!(how_calls_end_is_counted);

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

#[tokio::test]
async fn servers_that_cannot_be_asked_are_counted() {
    let locks = LockManager::builder().lazy("redis://127.0.0.1:1").expect("the URL is one");
    let error = locks.try_acquire("job", &LockOptions::new()).await.expect_err("nobody is there");
    assert!(matches!(error, LockError::Backend { .. }), "{error}");
    assert_eq!(locks.stats().failed, 1);
}
