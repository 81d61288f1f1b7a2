//! G6: a future that is dropped at any of its polls leaves nothing behind.

use std::{
    future::{pending, poll_fn},
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
    time::Duration,
};

use cache_lock::{InHand, LockGuard, LockManager, LockOptions, ReleaseOutcome};
use test_support::wait_until;

use crate::common::fleet::{Fleet, on_both_stores};

on_both_stores! {
    cancelled_acquire_of_free_lock_leaves_nothing,
    cancelled_acquire_of_held_lock_leaves_nothing,
    cancelled_acquire_of_released_lock_leaves_nothing,
    cancelled_release_leaves_nothing,
    cancelled_extend_leaves_nothing,
    cancelled_lost_leaves_nothing,
    cancelled_run_with_body_that_ends_leaves_nothing,
    cancelled_run_with_body_that_never_ends_leaves_nothing,
}

/// Longer than a test takes: a record that goes away was taken away.
const LONG: Duration = Duration::from_secs(3600);
const OPTIONS: LockOptions = LockOptions::new().expire(LONG).timeout(LONG);

/// More polls than any call here takes when nothing but itself keeps it waiting.
const ENOUGH: usize = 1000;

/// Where a future is dropped.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// Right after a poll that was pending.
    After(usize),
    /// When it would be polled the next time: what it waited for is there, and was not seen.
    BeforeNext(usize),
}

/// Polls a future as often as `cut` says; its output if it was ready by then.
async fn polled<F: Future>(cut: Cut, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut polls = 0;
    poll_fn(|context| {
        if matches!(cut, Cut::BeforeNext(limit) if polls == limit) {
            return Poll::Ready(None);
        }
        polls += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if matches!(cut, Cut::After(limit) if polls == limit) => {
                Poll::Ready(None)
            }
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Runs `round` with a cut at every poll, until it says that the call came to its end.
async fn at_every_poll(mut round: impl AsyncFnMut(Cut) -> bool) {
    for cut in [Cut::After, Cut::BeforeNext] {
        let mut polls = 1;
        while !round(cut(polls)).await {
            polls += 1;
            assert!(polls < ENOUGH, "the call never ends");
        }
    }
}

/// Waits until the manager has nothing in hand but connections.
fn wait_until_idle(locks: &LockManager) {
    wait_until("nothing is in hand", || {
        let InHand { leases, tasks, timers, .. } = locks.in_hand();
        (leases, tasks, timers) == (0, 0, 0)
    });
}

/// Nothing is left, and the lock can be taken.
async fn assert_clean(fleet: &Fleet, locks: &LockManager, what: impl std::fmt::Debug) {
    wait_until(&format!("no record is left: {what:?}"), || fleet.records() == 0);
    wait_until_idle(locks);
    let guard = locks.try_acquire("room", &OPTIONS).await;
    let guard = guard.unwrap_or_else(|error| panic!("{what:?}: {error}"));
    let guard = guard.unwrap_or_else(|| panic!("{what:?}: the lock is held"));
    assert_eq!(guard.release().await.ok(), Some(ReleaseOutcome::Released), "{what:?}");
}

/// Nothing here tests a slow server, so a busy machine must not look like one.
fn cold(fleet: &Fleet) -> LockManager {
    fleet.cold_manager(LockManager::builder().attempt_timeout(Duration::from_secs(30)))
}

async fn warm(fleet: &Fleet) -> LockManager {
    let locks = cold(fleet);
    let guard = locks.acquire("warm", &OPTIONS).await.expect("it is free");
    guard.release().await.expect("the store answers");
    locks
}

async fn held(locks: &LockManager) -> LockGuard {
    locks.acquire("room", &OPTIONS).await.expect("it is free")
}

async fn cancelled_acquire_of_free_lock_leaves_nothing(fleet: Fleet) {
    let warmed = warm(&fleet).await;
    for is_cold in [true, false] {
        at_every_poll(async |cut| {
            let locks = if is_cold { cold(&fleet) } else { warmed.clone() };
            let guard = polled(cut, locks.acquire("room", &OPTIONS)).await;
            let done = guard.is_some();
            drop(guard);
            assert_clean(&fleet, &locks, (is_cold, cut)).await;
            done
        })
        .await;
    }
}

async fn cancelled_acquire_of_held_lock_leaves_nothing(fleet: Fleet) {
    let (locks, holder) = (warm(&fleet).await, warm(&fleet).await);
    let guard = held(&holder).await;
    for polls in 1..6 {
        for cut in [Cut::After(polls), Cut::BeforeNext(polls)] {
            // A waiter may not be polled that often, as nothing happens; then time ends the wait.
            let waiting = polled(cut, locks.acquire("room", &OPTIONS));
            let waited = tokio::time::timeout(Duration::from_millis(20), waiting).await;
            assert!(waited.is_err() || matches!(waited, Ok(None)));
            wait_until_idle(&locks);
        }
    }
    assert_eq!(guard.release().await.ok(), Some(ReleaseOutcome::Released), "the lock is ours");
    assert_clean(&fleet, &locks, "after the holder").await;
}

/// The holder releases while the other waits, so that some of the cuts fall on the hand-over.
async fn cancelled_acquire_of_released_lock_leaves_nothing(fleet: Fleet) {
    let (locks, holder) = (warm(&fleet).await, warm(&fleet).await);
    at_every_poll(async |cut| {
        let guard = held(&holder).await;
        let release = tokio::spawn(guard.release());
        let acquired = polled(cut, locks.acquire("room", &OPTIONS)).await;
        let released = release.await.expect("it does not panic").expect("the store answers");
        assert_eq!(released, ReleaseOutcome::Released);
        let done = acquired.is_some();
        drop(acquired);
        assert_clean(&fleet, &locks, cut).await;
        done
    })
    .await;
}

async fn cancelled_release_leaves_nothing(fleet: Fleet) {
    let locks = warm(&fleet).await;
    at_every_poll(async |cut| {
        let released = polled(cut, held(&locks).await.release()).await;
        assert_clean(&fleet, &locks, cut).await;
        released.is_some()
    })
    .await;
}

async fn cancelled_extend_leaves_nothing(fleet: Fleet) {
    let locks = warm(&fleet).await;
    at_every_poll(async |cut| {
        let guard = held(&locks).await;
        let extended = polled(cut, guard.extend(LONG * 2)).await;
        assert!(!guard.is_lost());
        guard.extend(LONG * 2).await.expect("it is still ours");
        assert!(guard.remaining() > LONG);
        assert_eq!(guard.release().await.ok(), Some(ReleaseOutcome::Released), "{cut:?}");
        assert_clean(&fleet, &locks, cut).await;
        extended.is_some()
    })
    .await;
}

async fn cancelled_lost_leaves_nothing(fleet: Fleet) {
    let locks = warm(&fleet).await;
    let guard = held(&locks).await;
    for cut in [Cut::After(1), Cut::After(1)] {
        assert!(polled(cut, guard.lost()).await.is_none());
    }
    drop(guard);
    assert_clean(&fleet, &locks, "lost").await;
}

/// Whether the lock was still held when the body was dropped.
struct DropsInside<'a> {
    fleet: &'a Fleet,
    inside: &'a AtomicBool,
}

impl Drop for DropsInside<'_> {
    fn drop(&mut self) {
        self.inside.store(self.fleet.records() > 0, Ordering::SeqCst);
    }
}

async fn cancelled_run_with_body_that_ends_leaves_nothing(fleet: Fleet) {
    let locks = warm(&fleet).await;
    at_every_poll(async |cut| {
        let (started, inside) = (AtomicBool::new(false), AtomicBool::new(false));
        let body = async |_: &LockGuard| {
            started.store(true, Ordering::SeqCst);
            let _drops = DropsInside { fleet: &fleet, inside: &inside };
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
        };
        let ended = polled(cut, locks.run("room", &OPTIONS, body)).await;
        if started.into_inner() {
            assert!(inside.into_inner(), "{cut:?}: the body was dropped after the release");
        }
        assert_clean(&fleet, &locks, cut).await;
        ended.is_some()
    })
    .await;
}

async fn cancelled_run_with_body_that_never_ends_leaves_nothing(fleet: Fleet) {
    let locks = warm(&fleet).await;
    let inside = AtomicBool::new(false);
    let started = tokio::sync::Notify::new();
    let body = async |_: &LockGuard| {
        let _drops = DropsInside { fleet: &fleet, inside: &inside };
        started.notify_one();
        pending::<()>().await
    };
    tokio::select! {
        _ = locks.run("room", &OPTIONS, body) => panic!("the body does not end"),
        () = started.notified() => {}
    }
    assert!(inside.into_inner(), "the body was dropped after the release");
    assert_clean(&fleet, &locks, "run").await;
}
