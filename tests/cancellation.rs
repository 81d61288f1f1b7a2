//! G6: a future that is dropped at any of its polls leaves nothing behind.

#[path = "common/place.rs"]
mod place;

use std::{
    future::{pending, poll_fn},
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
};

use cache_lock::{LockGuard, LockManager, LockOptions, Released};
use test_support::wait_until;

use self::place::{LONG, Place, wait_until_idle};

const OPTIONS: LockOptions = LockOptions::new();

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

/// Nothing is left, and the lock can be taken.
async fn assert_clean(place: &Place, locks: &LockManager, what: impl std::fmt::Debug) {
    wait_until(&format!("no record is left: {what:?}"), || !place.has("room"));
    wait_until_idle(locks);
    let guard = locks.try_acquire("room", &OPTIONS).await;
    let guard = guard.unwrap_or_else(|error| panic!("{what:?}: {error}"));
    let guard = guard.unwrap_or_else(|| panic!("{what:?}: the lock is held"));
    assert_eq!(guard.release().await.ok(), Some(Released::Released), "{what:?}");
}

async fn warm(place: &Place) -> LockManager {
    let locks = place.manager();
    let guard = locks.acquire("warm", &OPTIONS).await.expect("it is free");
    guard.release().await.expect("the store answers");
    locks
}

async fn held(locks: &LockManager) -> LockGuard {
    locks.acquire("room", &OPTIONS).await.expect("it is free")
}

#[tokio::test(flavor = "multi_thread")]
async fn acquire_of_a_free_lock() {
    for place in Place::both() {
        let warmed = warm(&place).await;
        for cold in [true, false] {
            at_every_poll(async |cut| {
                let locks = if cold { place.manager() } else { warmed.clone() };
                let guard = polled(cut, locks.acquire("room", &OPTIONS)).await;
                let done = guard.is_some();
                drop(guard);
                assert_clean(&place, &locks, (cold, cut)).await;
                done
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn acquire_of_a_lock_that_is_held_throughout() {
    for place in Place::both() {
        let (locks, holder) = (warm(&place).await, warm(&place).await);
        let guard = held(&holder).await;
        for polls in 1..12 {
            for cut in [Cut::After(polls), Cut::BeforeNext(polls)] {
                assert!(polled(cut, locks.acquire("room", &OPTIONS)).await.is_none());
                wait_until_idle(&locks);
            }
        }
        assert_eq!(guard.release().await.ok(), Some(Released::Released), "nobody touched it");
        assert_clean(&place, &locks, "after the holder").await;
    }
}

/// The holder releases while the other waits, so that some of the cuts fall on the hand-over.
#[tokio::test(flavor = "multi_thread")]
async fn acquire_of_a_lock_that_is_being_released() {
    for place in Place::both() {
        let (locks, holder) = (warm(&place).await, warm(&place).await);
        at_every_poll(async |cut| {
            let guard = held(&holder).await;
            let release = tokio::spawn(guard.release());
            let acquired = polled(cut, locks.acquire("room", &OPTIONS)).await;
            let released = release.await.expect("it does not panic").expect("the store answers");
            assert_eq!(released, Released::Released);
            let done = acquired.is_some();
            drop(acquired);
            assert_clean(&place, &locks, cut).await;
            done
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn release() {
    for place in Place::both() {
        let locks = warm(&place).await;
        at_every_poll(async |cut| {
            let released = polled(cut, held(&locks).await.release()).await;
            assert_clean(&place, &locks, cut).await;
            released.is_some()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn extend() {
    for place in Place::both() {
        let locks = warm(&place).await;
        at_every_poll(async |cut| {
            let guard = held(&locks).await;
            let extended = polled(cut, guard.extend(LONG * 2)).await;
            assert!(!guard.is_lost());
            guard.extend(LONG * 2).await.expect("it is still ours");
            assert!(guard.remaining() > LONG);
            assert_eq!(guard.release().await.ok(), Some(Released::Released), "{cut:?}");
            assert_clean(&place, &locks, cut).await;
            extended.is_some()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost() {
    for place in Place::both() {
        let locks = warm(&place).await;
        let guard = held(&locks).await;
        for cut in [Cut::After(1), Cut::After(1)] {
            assert!(polled(cut, guard.lost()).await.is_none());
        }
        drop(guard);
        assert_clean(&place, &locks, "lost").await;
    }
}

/// Whether the lock was still held when the body was dropped.
struct DropsInside<'a> {
    place: &'a Place,
    inside: &'a AtomicBool,
}

impl Drop for DropsInside<'_> {
    fn drop(&mut self) {
        self.inside.store(self.place.has("room"), Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_with_a_body_that_ends() {
    for place in Place::both() {
        let locks = warm(&place).await;
        at_every_poll(async |cut| {
            let (started, inside) = (AtomicBool::new(false), AtomicBool::new(false));
            let body = async |_: &LockGuard| {
                started.store(true, Ordering::SeqCst);
                let _drops = DropsInside { place: &place, inside: &inside };
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
            };
            let ended = polled(cut, locks.run("room", &OPTIONS, body)).await;
            if started.into_inner() {
                assert!(inside.into_inner(), "{cut:?}: the body was dropped after the release");
            }
            assert_clean(&place, &locks, cut).await;
            ended.is_some()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_with_a_body_that_never_ends() {
    for place in Place::both() {
        let locks = warm(&place).await;
        let inside = AtomicBool::new(false);
        let started = tokio::sync::Notify::new();
        let body = async |_: &LockGuard| {
            let _drops = DropsInside { place: &place, inside: &inside };
            started.notify_one();
            pending::<()>().await
        };
        tokio::select! {
            _ = locks.run("room", &OPTIONS, body) => panic!("the body does not end"),
            () = started.notified() => {}
        }
        assert!(inside.into_inner(), "the body was dropped after the release");
        assert_clean(&place, &locks, "run").await;
    }
}
