//! The deadline of an acquisition, and its error there.

use std::time::Duration;

use cache_lock::{BackendErrorKind, LockError, LockGuard, LockManager, LockOptions};
use test_support::{Proxy, RedisServer, wait_until};

use crate::common::fleet::guarded;

const OPTIONS: LockOptions = LockOptions::new().expire(Duration::from_secs(3600));
const FOR_EVER: LockOptions = OPTIONS.timeout(Duration::MAX);

/// A server with a lock that is held, and a manager that reaches it through a proxy.
struct Held {
    server: RedisServer,
    proxy: Proxy,
    locks: LockManager,
    guard: LockGuard,
}

impl Held {
    async fn new(attempt: Duration) -> Self {
        let server = RedisServer::start();
        let proxy = Proxy::start(server.port());
        let holder = LockManager::connect(&server.url()).await.expect("the server runs");
        let guard = holder.acquire("room", &OPTIONS).await.expect("it is free");
        let url = server.url_through(proxy.port());
        let locks = LockManager::builder().attempt_timeout(attempt).connect(&url).await;
        let locks = locks.expect("the server runs");
        server.cli(&["CONFIG", "RESETSTAT"]);
        Self { server, proxy, locks, guard }
    }

    /// Waits for the lock; the proxy falls silent once the manager was told that it is held.
    async fn silent_while_waiting(&self, timeout: Duration) -> LockError {
        let (locks, options) = (self.locks.clone(), OPTIONS.timeout(timeout));
        let waiter = tokio::spawn(async move { locks.acquire("room", &options).await });
        // A second request is sent when the first is answered.
        wait_until("it was told", || self.server.calls("evalsha") >= 2);
        self.proxy.swallow();
        guarded(waiter).await.expect("no panic").expect_err("it is held")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_patience_asks_once() {
    let held = Held::new(Duration::from_secs(30)).await;
    let once = OPTIONS.timeout(Duration::ZERO);
    let error = guarded(held.locks.acquire("room", &once)).await.expect_err("it is held");
    assert!(error.is_contended() && error.is_retryable(), "{error}");
    assert_eq!(held.server.calls("evalsha"), 1);
    assert!(
        guarded(held.locks.try_acquire("room", &FOR_EVER)).await.expect("it answers").is_none()
    );
    assert_eq!(held.server.calls("evalsha"), 2, "`try_acquire` does not wait either");
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_patience_ends_with_holder() {
    let held = Held::new(Duration::from_secs(30)).await;
    let locks = held.locks.clone();
    let cancelled =
        tokio::time::timeout(Duration::from_millis(50), locks.acquire("room", &FOR_EVER));
    assert!(cancelled.await.is_err());
    let waiter = tokio::spawn(async move { locks.acquire("room", &FOR_EVER).await });
    wait_until("it waits", || held.server.calls("evalsha") >= 10);
    held.guard.release().await.expect("the server runs");
    drop(guarded(waiter).await.expect("no panic").expect("it was released"));
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_held_to_deadline_is_contention() {
    let held = Held::new(Duration::from_secs(30)).await;
    let timeout = Duration::from_millis(300);
    let error = guarded(held.locks.acquire("room", &OPTIONS.timeout(timeout))).await;
    let Err(LockError::Contended { waited, no_expiry, key, .. }) = error else {
        panic!("{error:?}")
    };
    assert_eq!((no_expiry, key.as_str()), (false, "room"));
    assert!(waited >= timeout, "{waited:?}");
}

/// The server is silent for longer than it may be.
#[tokio::test(flavor = "multi_thread")]
async fn server_silent_for_longer_than_attempt_is_timeout() {
    let held = Held::new(Duration::from_millis(200)).await;
    let error = held.silent_while_waiting(Duration::from_secs(4)).await;
    let LockError::Backend { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), BackendErrorKind::Timeout);
}

/// The deadline comes before the server has had its time to answer.
#[tokio::test(flavor = "multi_thread")]
async fn server_silent_at_deadline_is_contention() {
    let held = Held::new(Duration::from_secs(10)).await;
    let error = held.silent_while_waiting(Duration::from_secs(2)).await;
    assert!(error.is_contended(), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn server_unreachable_at_deadline_is_named() {
    let held = Held::new(Duration::from_secs(30)).await;
    let locks = held.locks.clone();
    let options = OPTIONS.timeout(Duration::from_secs(2));
    let waiter = tokio::spawn(async move { locks.acquire("room", &options).await });
    wait_until("it was told", || held.server.calls("evalsha") >= 2);
    held.proxy.refuse();
    let error = guarded(waiter).await.expect("no panic").expect_err("it is held");
    let LockError::Backend { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), BackendErrorKind::Unreachable);
}

#[tokio::test]
async fn times_out_of_range_are_refused() {
    let locks = LockManager::in_memory();
    for expire in [Duration::ZERO, Duration::from_millis(99), Duration::MAX] {
        let error = locks.acquire("room", &OPTIONS.expire(expire)).await.err();
        let Some(LockError::InvalidOption { option, value, .. }) = error else {
            panic!("{expire:?}: {error:?}")
        };
        assert_eq!((option, value), ("expire", expire));
    }
    let guard = locks.acquire("room", &OPTIONS).await.expect("it is free");
    for duration in [Duration::ZERO, Duration::from_millis(99), Duration::MAX] {
        let error = guard.extend(duration).await.err();
        let Some(LockError::InvalidOption { value, .. }) = error else {
            panic!("{duration:?}: {error:?}")
        };
        assert_eq!(value, duration);
    }
    for attempt in [Duration::ZERO, Duration::MAX] {
        let built = LockManager::builder().attempt_timeout(attempt).in_memory(Default::default());
        assert!(matches!(built, Err(LockError::InvalidOption { value, .. }) if value == attempt));
    }
}
