//! A body that asks for a lock that it runs under would wait for itself.

use std::{panic::AssertUnwindSafe, time::Duration};

use cache_lock::{LockError, LockGuard, LockManager};
use tokio::task::JoinSet;

use crate::common::fleet::{Fleet, PATIENT, on_both_stores};

on_both_stores!(
    same_lock_inside_of_its_body_is_error,
    lock_of_another_kind_inside_of_body_is_none,
    siblings_are_not_nested,
    spawned_task_is_not_nested,
    guard_alone_encloses_nothing,
    body_that_panicked_encloses_nothing,
    body_that_was_dropped_encloses_nothing,
);

async fn nested(locks: &LockManager, key: &str) -> bool {
    match locks.try_acquire(key, &PATIENT).await {
        Ok(_) => false,
        Err(LockError::Nested { key: nested, .. }) => {
            assert_eq!(nested.as_str(), key);
            true
        }
        Err(error) => panic!("{error}"),
    }
}

async fn same_lock_inside_of_its_body_is_error(fleet: Fleet) {
    let locks = fleet.manager().await;
    let inner = async |_: &LockGuard| {
        assert!(nested(&locks, "inner").await, "the innermost");
        assert!(nested(&locks, "outer").await, "and those around it");
        tokio::task::yield_now().await;
        assert!(nested(&locks, "outer").await, "after an await, too");
    };
    let outer = async |_: &LockGuard| {
        assert!(!nested(&locks, "inner").await);
        locks.run("inner", &PATIENT, inner).await.expect("another key");
        assert!(!nested(&locks, "inner").await, "that body has ended");
        assert!(nested(&locks, "outer").await);
    };
    locks.run("outer", &PATIENT, outer).await.expect("free");
    assert!(!nested(&locks, "outer").await);
}

async fn lock_of_another_kind_inside_of_body_is_none(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let elsewhere = LockManager::in_memory();
    let body = async |_: &LockGuard| {
        assert!(!nested(&here, "other").await);
        // The other manager does not know the holder: the lock is busy, for another process as well.
        assert!(!nested(&there, "job").await);
        assert!(elsewhere.try_acquire("job", &PATIENT).await.expect("no failure").is_some());
    };
    here.run("job", &PATIENT, body).await.expect("free");
}

/// Two branches of one task take turns, though they are polled by turns.
async fn siblings_are_not_nested(fleet: Fleet) {
    let locks = fleet.manager().await;
    let section = async || {
        let body = async |_: &LockGuard| tokio::time::sleep(Duration::from_millis(5)).await;
        locks.run("job", &PATIENT, body).await
    };
    let (first, second, third) = tokio::join!(section(), section(), section());
    assert!(first.is_ok() && second.is_ok() && third.is_ok(), "{first:?} {second:?} {third:?}");
}

async fn spawned_task_is_not_nested(fleet: Fleet) {
    let locks = fleet.manager().await;
    let body = async |_: &LockGuard| {
        let mut tasks = JoinSet::new();
        let own = locks.clone();
        tasks.spawn(
            async move { own.try_acquire("job", &PATIENT).await.map(|guard| guard.is_none()) },
        );
        tasks.join_next().await
    };
    let busy = locks.run("job", &PATIENT, body).await.expect("free");
    assert!(matches!(busy, Some(Ok(Ok(true)))), "{busy:?}");
}

async fn guard_alone_encloses_nothing(fleet: Fleet) {
    let locks = fleet.manager().await;
    let _guard = locks.acquire("job", &PATIENT).await.expect("free");
    assert!(!nested(&locks, "job").await, "it is busy: another task may drop the guard");
}

async fn body_that_panicked_encloses_nothing(fleet: Fleet) {
    let locks = fleet.manager().await;
    let body = async |_: &LockGuard| {
        let inner = async |_: &LockGuard| panic!("on purpose");
        let inner = AssertUnwindSafe(locks.run("inner", &PATIENT, inner));
        let caught = catch_unwind(inner).await;
        assert!(caught.is_err());
        assert!(nested(&locks, "outer").await, "this one goes on");
        drop(locks.acquire("inner", &PATIENT).await.expect("not nested; released by its drop"));
    };
    locks.run("outer", &PATIENT, body).await.expect("free");
    assert!(!nested(&locks, "outer").await);
}

async fn body_that_was_dropped_encloses_nothing(fleet: Fleet) {
    let locks = fleet.manager().await;
    let body = async |_: &LockGuard| std::future::pending::<()>().await;
    let run = locks.run("job", &PATIENT, body);
    assert!(tokio::time::timeout(Duration::from_millis(50), run).await.is_err());
    drop(locks.acquire("job", &PATIENT).await.expect("not nested; released by its drop"));
}

/// Polls a future and catches its panic, in the same task.
async fn catch_unwind<F: Future>(future: AssertUnwindSafe<F>) -> std::thread::Result<F::Output> {
    let mut future = Box::pin(future.0);
    std::future::poll_fn(move |context| {
        let poll = AssertUnwindSafe(|| future.as_mut().poll(context));
        match std::panic::catch_unwind(poll) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panic)),
        }
    })
    .await
}
