//! Waits that are dropped, at any point and by the thousand.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use cache_lock::{LockGuard, LockManager, ReleaseOutcome};
use test_support::wait_until;

use super::{LONG, acquiring, poll_once, wait_until_idle};
use crate::common::fleet::{Fleet, guarded, on_both_stores};

on_both_stores! {
    waiter_cancelled_in_middle_of_line_leaves_nothing,
    waiter_cancelled_while_it_asks_leaves_nothing,
    waiter_cancelled_with_grant_leaves_nothing,
    waiter_cancelled_at_any_poll_of_hand_over_leaves_nothing,
    thousands_of_cancelled_waits_leave_nothing,
}

async fn taken(locks: &LockManager) -> LockGuard {
    locks.acquire("room", &LONG).await.expect("it gets its turn")
}

/// Nothing is left on either side.
fn assert_clean(fleet: &Fleet, locks: &LockManager) {
    wait_until("no record is left", || fleet.records() == 0);
    wait_until_idle(locks);
}

async fn waiter_cancelled_in_middle_of_line_leaves_nothing(fleet: Fleet) {
    let locks = fleet.manager().await;
    let guard = taken(&locks).await;
    let mut line: Vec<_> = (0..30).map(|number| (number, acquiring(&locks, LONG))).collect();
    line.iter_mut().for_each(|(_, waiting)| poll_once(waiting));
    line.retain(|(number, _)| number % 3 == 0);
    let order = Arc::new(Mutex::new(Vec::new()));
    let line: Vec<_> = line
        .into_iter()
        .map(|(number, waiting)| {
            let order = Arc::clone(&order);
            tokio::spawn(async move {
                let guard = waiting.await.expect("it gets its turn");
                order.lock().expect("no panic").push(number);
                drop(guard);
            })
        })
        .collect();
    drop(guard);
    for waiting in line {
        guarded(waiting).await.expect("no panic");
    }
    let order = order.lock().expect("no panic").clone();
    assert_eq!(order, (0..30).step_by(3).collect::<Vec<_>>());
    assert_clean(&fleet, &locks);
}

/// The next one goes on with what it has begun.
async fn waiter_cancelled_while_it_asks_leaves_nothing(fleet: Fleet) {
    let (locks, holder) = (fleet.manager().await, fleet.manager().await);
    for others in [0, 1, 5] {
        let guard = taken(&holder).await;
        let mut leader = acquiring(&locks, LONG);
        poll_once(&mut leader);
        let mut line: Vec<_> = (0..others).map(|_| acquiring(&locks, LONG)).collect();
        line.iter_mut().for_each(poll_once);
        drop(leader);
        assert_eq!(guard.release().await.ok(), Some(ReleaseOutcome::Released));
        for waiting in line {
            drop(guarded(waiting).await.expect("it gets its turn"));
        }
        assert_clean(&fleet, &locks);
    }
}

async fn waiter_cancelled_with_grant_leaves_nothing(fleet: Fleet) {
    let locks = fleet.manager().await;
    for others in [0, 1, 5] {
        let guard = taken(&locks).await;
        let mut handed = acquiring(&locks, LONG);
        poll_once(&mut handed);
        let mut line: Vec<_> = (0..others).map(|_| acquiring(&locks, LONG)).collect();
        line.iter_mut().for_each(poll_once);
        assert_eq!(guard.release().await.ok(), Some(ReleaseOutcome::Released));
        drop(handed);
        for waiting in line {
            drop(guarded(waiting).await.expect("it gets its turn"));
        }
        assert_clean(&fleet, &locks);
    }
}

/// The same with the hand-over from this process and from another, at each poll that there is.
async fn waiter_cancelled_at_any_poll_of_hand_over_leaves_nothing(fleet: Fleet) {
    let (locks, other) = (fleet.manager().await, fleet.manager().await);
    for holder in [&locks, &other] {
        let mut polls = 1;
        loop {
            let guard = taken(holder).await;
            let behind = tokio::spawn(acquiring(&locks, LONG));
            let releasing = tokio::spawn(guard.release());
            let mut waiting = acquiring(&locks, LONG);
            let mut polled = 0;
            let acquired = poll_fn(|context| match waiting.as_mut().poll(context) {
                Poll::Ready(acquired) => Poll::Ready(Some(acquired.expect("it gets its turn"))),
                Poll::Pending => {
                    polled += 1;
                    if polled == polls { Poll::Ready(None) } else { Poll::Pending }
                }
            });
            // The waiter behind may come first, and wait for its turn, as it is not polled.
            let acquired = tokio::time::timeout(Duration::from_millis(50), acquired).await;
            drop(waiting);
            let done = !matches!(acquired, Ok(None));
            drop(acquired);
            let released = releasing.await.expect("no panic").expect("the store answers");
            assert_eq!(released, ReleaseOutcome::Released);
            drop(guarded(behind).await.expect("no panic").expect("it gets its turn"));
            assert_clean(&fleet, &locks);
            if done {
                break;
            }
            polls += 1;
            assert!(polls < 1000, "the call never ends");
        }
    }
}

async fn thousands_of_cancelled_waits_leave_nothing(fleet: Fleet) {
    let (locks, holder) = (fleet.manager().await, fleet.manager().await);
    let guard = taken(&holder).await;
    for round in 0..100 {
        let waiting: Vec<_> = (0..100)
            .map(|number| {
                let mut waiting = acquiring(&locks, LONG);
                tokio::spawn(async move {
                    if number % 2 == 0 {
                        poll_once(&mut waiting);
                        // Dropped after the first poll.
                        return;
                    }
                    let moment = Duration::from_micros((number * round) % 1000);
                    let waited = tokio::time::timeout(moment, waiting).await;
                    assert!(waited.is_err(), "{waited:?}");
                })
            })
            .collect();
        for waiting in waiting {
            guarded(waiting).await.expect("no panic");
        }
    }
    wait_until_idle(&locks);
    assert_eq!(fleet.records(), 1, "the holder's record alone is left");
    assert_eq!(guard.release().await.ok(), Some(ReleaseOutcome::Released), "the lock is ours");
    drop(taken(&locks).await);
    assert_clean(&fleet, &locks);
    wait_until_idle(&holder);
}
