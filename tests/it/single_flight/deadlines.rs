//! No caller waits for longer than its timeout.

use std::time::Duration;

use cache_lock::{LockError, LockManager, OnLost, SingleFlightError};
use test_support::{Data, wait_until};

use super::{LOCAL, LOCKED, Outcome, PATIENT, RECORDED, Work, call, calling, is_contended};
use crate::common::fleet::{Fleet, guarded, on_both_stores};

on_both_stores!(
    waiter_gives_up_at_its_deadline,
    caller_with_no_time_tries_once,
    manager_that_was_shut_down_computes_nothing,
    shutdown_ends_local_flights,
);

const SOON: Duration = Duration::from_millis(50);

/// A waiter in the process that computes, and a waiter for the lock.
async fn waiter_gives_up_at_its_deadline(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let work = Work::that_waits();
    let computing = tokio::spawn(call(here.clone(), RECORDED, work.clone()));
    wait_until("the first computes", || work.begun() == 1);
    for timeout in [SOON, Duration::ZERO] {
        let options = RECORDED.lock(PATIENT.timeout(timeout));
        for locks in [&here, &there] {
            let outcome = call(locks.clone(), options, work.clone()).await;
            assert!(is_contended(&outcome), "{outcome:?}");
            if let Err(SingleFlightError::Lock(LockError::Contended { waited, .. })) = outcome {
                assert!(waited >= timeout, "{waited:?}");
            }
        }
    }
    computing.abort();

    let local = LOCAL.lock(PATIENT.timeout(SOON));
    let computing = calling(&here, LOCAL, &work);
    let outcome = call(here.clone(), local, work.clone()).await;
    assert!(is_contended(&outcome), "{outcome:?}");
    drop(computing);
}

async fn caller_with_no_time_tries_once(fleet: Fleet) {
    let locks = fleet.manager().await;
    let work = Work::that_is_done();
    let once = PATIENT.timeout(Duration::ZERO);
    assert_eq!(call(locks.clone(), LOCAL.lock(once), work.clone()).await.ok(), Some(1));
    assert_eq!(call(locks.clone(), LOCKED.lock(once), work.clone()).await.ok(), Some(2));
    assert_eq!(call(locks.clone(), RECORDED.lock(once), work.clone()).await.ok(), Some(3));
    assert_eq!(call(locks.clone(), RECORDED.lock(once), work.clone()).await.ok(), Some(3));
}

async fn manager_that_was_shut_down_computes_nothing(fleet: Fleet) {
    let locks = fleet.manager().await;
    let work = Work::that_waits();
    let computing = tokio::spawn(call(locks.clone(), RECORDED, work.clone()));
    wait_until("the first computes", || work.begun() == 1);
    let waiting = calling(&locks, RECORDED, &work);
    locks.shutdown().await;
    let lost = computing.await.expect("no panic").expect_err("the lock is taken away");
    assert!(matches!(&lost, SingleFlightError::Lock(error) if error.is_lost()), "{lost:?}");
    let is_shut_down =
        |outcome: &Outcome| matches!(outcome, Err(SingleFlightError::Lock(LockError::ShutDown)));
    let outcome = waiting.await;
    assert!(is_shut_down(&outcome), "{outcome:?}");
    for outcome in [
        call(locks.clone(), LOCAL, work.clone()).await,
        call(locks.clone(), RECORDED, work.clone()).await,
    ] {
        assert!(is_shut_down(&outcome), "{outcome:?}");
    }
    assert_eq!(work.begun(), 1);
}

/// The computation is dropped, unless its options let it finish.
async fn shutdown_ends_local_flights(fleet: Fleet) {
    let is_shut_down =
        |outcome: &Outcome| matches!(outcome, Err(SingleFlightError::Lock(LockError::ShutDown)));
    for on_lost in [OnLost::Cancel, OnLost::Finish] {
        let locks = fleet.manager().await;
        let work = Work::that_waits();
        let options = LOCAL.lock(PATIENT.on_lost(on_lost));
        let computing = tokio::spawn(call(locks.clone(), options, work.clone()));
        wait_until("the first computes", || work.begun() == 1);
        let waiting = [0, 1].map(|_| tokio::spawn(calling(&locks, options, &work)));
        locks.shutdown().await;
        for waiting in waiting {
            let outcome = waiting.await.expect("no panic");
            assert!(is_shut_down(&outcome), "{outcome:?}");
        }
        if on_lost == OnLost::Finish {
            work.let_go();
        }
        let outcome = computing.await.expect("no panic");
        match on_lost {
            OnLost::Finish => assert_eq!(outcome.ok(), Some(1)),
            OnLost::Cancel => assert!(is_shut_down(&outcome), "{outcome:?}"),
        }
        assert_eq!((work.begun(), locks.in_hand().flights), (1, 0));
    }
}

/// Each waiter gets an error that names the cause, within its timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_server_keeps_no_caller() {
    let fleet = Fleet::redis();
    let builder = LockManager::builder().attempt_timeout(Duration::from_millis(200));
    let locks = fleet.build(builder).await;
    let server = fleet.server().expect("it is on Redis");
    for stop in [true, false] {
        if stop {
            server.stop()
        } else {
            server.kill()
        }
        let work = Work::that_is_done();
        let options = RECORDED.lock(PATIENT.timeout(Duration::from_millis(500)));
        let calls: Vec<_> = (0..200).map(|_| calling(&locks, options, &work)).collect();
        let outcomes = guarded(super::all(calls)).await;
        let is_backend = |outcome: &Option<Outcome>| {
            matches!(outcome, Some(Err(SingleFlightError::Lock(LockError::Backend { .. }))))
        };
        assert!(outcomes.iter().any(is_backend), "{outcomes:?}");
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Some(Err(_)))), "{outcomes:?}");
        assert_eq!(work.begun(), 0);
        if stop {
            server.cont();
        }
    }
}

/// As waiters for a lock are served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_comes_back_serves_waiters() {
    let fleet = Fleet::redis();
    let locks = fleet.manager().await;
    let server = fleet.server().expect("it is on Redis");
    server.kill();
    let work = Work::that_is_done();
    let calls: Vec<_> = (0..50).map(|_| calling(&locks, RECORDED, &work)).collect();
    let outcomes = tokio::spawn(super::all(calls));
    server.restart(Data::Lose);
    let outcomes = guarded(outcomes).await.expect("no panic");
    assert_eq!(super::sorted(&outcomes).0, [1; 50]);
}

/// A waiter behind a caller that waits for a dead server gets the server's error, not contention.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_server_is_named() {
    let fleet = Fleet::redis();
    let locks = fleet.manager().await;
    fleet.server().expect("it is on Redis").kill();
    let work = Work::that_is_done();
    let patient = |time| LOCKED.lock(PATIENT.timeout(time));
    let first = calling(&locks, patient(SOON), &work);
    let unpolled = calling(&locks, patient(SOON), &work);
    let second = tokio::spawn(calling(&locks, patient(Duration::from_secs(3600)), &work));
    let is_backend = |outcome: Outcome| {
        matches!(outcome, Err(SingleFlightError::Lock(LockError::Backend { .. })))
    };
    assert!(is_backend(first.await));
    wait_until("the second waits for the server", || locks.in_hand().keys == 1);
    assert!(is_backend(guarded(unpolled).await));
    second.abort();
}
