//! Flights inside of locks and of each other.

use cache_lock::{LockError, LockGuard, LockManager, SingleFlightError, single_flight::Kind};
use test_support::wait_until;

use super::{LOCAL, LOCKED, Outcome, PATIENT, RECORDED, SingleFlight, Work, call};
use crate::common::fleet::{Fleet, on_both_stores};

on_both_stores!(
    caller_that_would_wait_for_itself_is_told_at_once,
    local_flight_takes_no_lock,
    flights_inside_of_other_locks,
);

fn is_nested(outcome: &Outcome) -> bool {
    matches!(outcome, Err(SingleFlightError::Lock(LockError::Nested { .. })))
}

async fn in_itself<K: Kind<usize>>(locks: &LockManager, options: SingleFlight<K>) {
    let work = Work::that_is_done();
    let outcome = locks.single_flight("room", &options, || async {
        let inner = call(locks.clone(), options, work.clone()).await;
        assert!(is_nested(&inner), "{inner:?}");
        Ok(7)
    });
    let outcome: Outcome = outcome.await;
    assert_eq!(outcome.ok(), Some(7));
    assert_eq!(work.begun(), 0);
}

async fn caller_that_would_wait_for_itself_is_told_at_once(fleet: Fleet) {
    let locks = fleet.manager().await;
    in_itself(&locks, LOCAL).await;
    in_itself(&locks, LOCKED).await;
    in_itself(&locks, RECORDED).await;
    // After it, no caller is inside.
    let work = Work::that_is_done();
    assert_eq!(call(locks.clone(), LOCAL, work.clone()).await.ok(), Some(1));

    // Another caller of this process waits for the lock that this body holds, and the flight must not
    // wait for that caller.
    let body = async |_: &LockGuard| {
        let waiting = tokio::spawn(call(locks.clone(), LOCKED, work.clone()));
        wait_until("it waits", || locks.in_hand().flights == 1);
        let outcome = call(locks.clone(), LOCKED, work.clone()).await;
        waiting.abort();
        outcome
    };
    let outcome = locks.run("room", &PATIENT, body).await.expect("it is free");
    assert!(is_nested(&outcome), "{outcome:?}");
}

async fn local_flight_takes_no_lock(fleet: Fleet) {
    let locks = fleet.manager().await;
    let work = Work::that_is_done();
    let body = async |_: &LockGuard| call(locks.clone(), LOCAL, work.clone()).await;
    let outcome = locks.run("room", &PATIENT, body).await.expect("it is free");
    assert_eq!(outcome.ok(), Some(1));
}

async fn flights_inside_of_other_locks(fleet: Fleet) {
    let locks = fleet.manager().await;
    let work = Work::that_is_done();
    let body = async |_: &LockGuard| call(locks.clone(), RECORDED, work.clone()).await;
    let outcome = locks.run("house", &PATIENT, body).await.expect("it is free");
    assert_eq!(outcome.ok(), Some(1));
    let outer = locks.single_flight("house", &RECORDED, || async {
        call(locks.clone(), RECORDED, work.clone()).await.map_err(|_| super::Failed(0))
    });
    assert_eq!(outer.await.ok(), Some(1));
    assert_eq!(work.begun(), 1);
}
