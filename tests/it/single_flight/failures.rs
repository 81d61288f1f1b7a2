//! The caller that computes fails, panics, is cancelled or too late.

use std::{
    convert::Infallible,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use cache_lock::{LockManager, OnLost, SingleFlight, SingleFlightError, single_flight::Kind};
use test_support::wait_until;

use super::{Failed, LOCAL, LOCKED, RECORDED, Work, all, call, calling, never, sorted};
use crate::common::{
    fleet::{Fleet, SHORT_LEASE, on_both_stores},
    waiters::wait_until_idle,
};

on_both_stores!(
    error_is_its_callers_alone,
    shared_error_reaches_all_earlier_callers,
    later_caller_starts_afresh,
    error_of_another_type_is_not_taken,
    error_stays_in_its_process,
    panic_is_its_callers_alone,
    next_computes_when_first_is_dropped,
    unpolled_caller_holds_up_no_other,
    ten_thousand_callers_that_give_up_leave_nothing,
    lost_lock_is_its_callers_alone,
);

/// All kinds of flights of one manager.
async fn of_each_kind(fleet: &Fleet, test: impl AsyncFn(LockManager, &str)) {
    for kind in ["local", "locked", "recorded"] {
        let locks = fleet.manager().await;
        test(locks.clone(), kind).await;
        wait_until("nothing is left", || locks.in_hand().flights == 0);
        wait_until_idle(&locks);
        if let Some(server) = fleet.server() {
            server.cli(&["FLUSHALL"]);
        }
    }
}

fn calls(locks: &LockManager, kind: &str, work: &Work, number: usize) -> Vec<super::Calling> {
    (0..number)
        .map(|_| match kind {
            "local" => calling(locks, LOCAL, work),
            "locked" => calling(locks, LOCKED, work),
            _ => calling(locks, RECORDED, work),
        })
        .collect()
}

async fn error_is_its_callers_alone(fleet: Fleet) {
    of_each_kind(&fleet, async |locks, kind| {
        let work = Work::that_waits().failing(3);
        let calls = calls(&locks, kind, &work, 10);
        work.let_go();
        let (values, errors) = sorted(&all(calls).await);
        // A value may be recorded already, in memory, where the stores are one.
        assert_eq!((values, errors), (vec![4; 7], vec![1, 2, 3]), "{kind}");
        assert_eq!(work.begun(), 4, "{kind}");
    })
    .await;
}

async fn shared_error_reaches_all_earlier_callers(fleet: Fleet) {
    let locks = fleet.manager().await;
    shared_errors(&locks, LOCAL).await;
    shared_errors(&locks, LOCKED).await;
    shared_errors(&locks, RECORDED).await;
}

async fn shared_errors<K>(locks: &LockManager, options: SingleFlight<K>)
where
    K: Kind<usize> + Send + Sync + 'static,
{
    let work = Work::that_waits().failing(1);
    let mut calls: Vec<_> =
        (0..10).map(|_| calling(locks, options.share_errors(), &work)).collect();
    // It does not want the errors of others.
    calls.push(calling(locks, options, &work));
    work.let_go();
    let (values, errors) = sorted(&all(calls).await);
    assert_eq!((values, errors), (vec![2], vec![1; 10]));
    let later = call(locks.clone(), options.share_errors(), work.clone()).await;
    assert!(later.is_ok(), "{later:?}");
}

/// Also while an earlier caller has not seen the outcome yet.
async fn later_caller_starts_afresh(fleet: Fleet) {
    of_each_kind(&fleet, async |locks, kind| {
        let share = LOCAL.share_errors();
        for failures in [0, 1] {
            let work = Work::that_waits().failing(failures);
            let (first, unpolled) = match kind {
                "local" => (calling(&locks, share, &work), calling(&locks, share, &work)),
                _ => {
                    let share = LOCKED.share_errors();
                    (calling(&locks, share, &work), calling(&locks, share, &work))
                }
            };
            work.let_go();
            let first = sorted(&all([first]).await);
            let later = sorted(&all(calls_of_once(&locks, kind, &work)).await);
            assert_eq!(later, (vec![2], vec![]), "{kind}");
            assert_eq!(sorted(&all([unpolled]).await), first, "{kind}");
        }
    })
    .await;
}

/// One that has not asked yet.
fn calls_of_once(locks: &LockManager, kind: &str, work: &Work) -> [super::Calling; 1] {
    let (locks, work) = (locks.clone(), work.clone());
    [if kind == "local" {
        Box::pin(call(locks, LOCAL, work))
    } else {
        Box::pin(call(locks, LOCKED, work))
    }]
}

async fn error_of_another_type_is_not_taken(fleet: Fleet) {
    let locks = fleet.manager().await;
    let options = LOCKED.share_errors();
    let work = Work::that_waits().failing(1);
    let first = calling(&locks, options, &work);
    let compute = || async { Ok::<usize, Infallible>(7) };
    let other = tokio::spawn({
        let locks = locks.clone();
        async move { locks.single_flight("room", &options, compute).await }
    });
    work.let_go();
    let (_, errors) = sorted(&all([first]).await);
    assert_eq!(errors, [1]);
    assert_eq!(other.await.expect("no panic").ok(), Some(7));
}

async fn error_stays_in_its_process(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let options = RECORDED.share_errors();
    let work = Work::that_waits().failing(1);
    let first = tokio::spawn(call(here, options, work.clone()));
    wait_until("the first computes", || work.begun() == 1);
    let second = tokio::spawn(call(there, options, work.clone()));
    work.let_go();
    let error = first.await.expect("no panic").expect_err("it fails");
    assert!(matches!(error, SingleFlightError::Compute(Failed(1))), "{error:?}");
    assert_eq!(second.await.expect("no panic").ok(), Some(2));
}

async fn panic_is_its_callers_alone(fleet: Fleet) {
    of_each_kind(&fleet, async |locks, kind| {
        let work = Work::that_waits();
        let panics = {
            let (locks, work, local) = (locks.clone(), work.clone(), kind == "local");
            async move {
                let compute = || async {
                    let _ = work.compute().await;
                    panic!("as the test wants it");
                };
                match local {
                    true => locks.single_flight("room", &LOCAL, compute).await,
                    false => locks.single_flight("room", &RECORDED, compute).await,
                }
            }
        };
        let mut panics: super::Calling = Box::pin(panics);
        super::poll_once(&mut panics);
        let mut all_calls = calls(&locks, kind, &work, 9);
        all_calls.push(panics);
        work.let_go();
        let outcomes = all(all_calls).await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_none()).count(), 1, "{kind}");
        let (values, _) = sorted(&outcomes.into_iter().filter(Option::is_some).collect::<Vec<_>>());
        assert_eq!(values, [2; 9], "{kind}");
    })
    .await;
}

async fn next_computes_when_first_is_dropped(fleet: Fleet) {
    of_each_kind(&fleet, async |locks, kind| {
        let work = Work::that_waits();
        let mut calls = calls(&locks, kind, &work, 5).into_iter();
        let first = tokio::spawn(calls.next().expect("there are five"));
        wait_until("the first computes", || work.begun() == 1);
        let rest = tokio::spawn(all(calls));
        first.abort();
        wait_until("the next computes", || work.begun() == 2);
        work.let_go();
        let (values, _) = sorted(&rest.await.expect("no panic"));
        assert_eq!(values, [2; 4], "{kind}");
    })
    .await;
}

/// A turn is not handed to a waiter that may never be polled.
async fn unpolled_caller_holds_up_no_other(fleet: Fleet) {
    of_each_kind(&fleet, async |locks, kind| {
        let work = Work::that_waits().failing(1);
        let mut calls = calls(&locks, kind, &work, 3).into_iter();
        let mut next = || calls.next().expect("there are three");
        let (first, unpolled, last) = (next(), next(), next());
        work.let_go();
        let (values, errors) = sorted(&all([first, last]).await);
        assert_eq!((values, errors), (vec![2], vec![1]), "{kind}");
        let (values, _) = sorted(&all([unpolled]).await);
        assert_eq!(values, [2], "{kind}");
    })
    .await;
}

async fn ten_thousand_callers_that_give_up_leave_nothing(fleet: Fleet) {
    of_each_kind(&fleet, async |locks, kind| {
        let work = Work::that_waits();
        let first = tokio::spawn(calls(&locks, kind, &work, 1).remove(0));
        wait_until("the first computes", || work.begun() == 1);
        drop(calls(&locks, kind, &work, 10_000));
        assert_eq!(locks.in_hand().flights, 1, "{kind}");
        first.abort();
        assert!(first.await.is_err());
        assert_eq!(locks.in_hand().flights, 0, "{kind}");
    })
    .await;
}

async fn lost_lock_is_its_callers_alone(fleet: Fleet) {
    let locks = fleet.manager().await;
    let brief = SingleFlight::new().lock(SHORT_LEASE).record(super::HOUR);
    let hangs = locks.single_flight("room", &brief, never::<Result<usize, Failed>>);
    let work = Work::that_is_done();
    let waits = async {
        // It asks when the other one has.
        tokio::task::yield_now().await;
        calling(&locks, RECORDED, &work).await
    };
    let (lost, value) = tokio::join!(hangs, waits);
    assert!(matches!(&lost, Err(SingleFlightError::Lock(error)) if error.is_lost()), "{lost:?}");
    assert_eq!(value.ok(), Some(1));

    // One that is let finish returns its value.
    let finishes = SingleFlight::new().lock(SHORT_LEASE.on_lost(OnLost::Finish));
    let late = locks.single_flight("late", &finishes, || async {
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        Ok::<_, Infallible>(1)
    });
    assert_eq!(late.await.ok(), Some(1));
}

/// Each waiter fails in its turn. On one thread, so that all woken waiters are polled between two
/// failures.
#[tokio::test]
async fn many_failures_wake_each_waiter_few_times() {
    const CALLERS: usize = 1000;
    let locks = LockManager::in_memory();
    let polls = Arc::new(AtomicUsize::new(0));
    let calls = (0..CALLERS).map(|number| {
        let (locks, polls) = (locks.clone(), Arc::clone(&polls));
        let mut calling = Box::pin(async move {
            let compute = async || {
                tokio::task::yield_now().await;
                Err(Failed(number))
            };
            locks.single_flight("room", &LOCAL, compute).await
        });
        let counted = poll_fn(move |context| {
            polls.fetch_add(1, Ordering::Relaxed);
            calling.as_mut().poll(context)
        });
        Box::pin(counted) as super::Calling
    });
    let (values, errors) = sorted(&all(calls).await);
    assert_eq!((values.len(), errors.len()), (0, CALLERS));
    let polls = polls.load(Ordering::Relaxed);
    // Half a million if each failure wakes all. A machine that stands still adds a few rounds.
    assert!(polls < 50 * CALLERS, "{polls}");
}
