//! Which callers share a computation, and which do not.

use std::convert::Infallible;

use cache_lock::{LockKey, SingleFlight, single_flight::Kind};
use test_support::wait_until;

use super::{LOCAL, LOCKED, RECORDED, Work, all, call, calling, sorted};
use crate::common::{
    fleet::{Fleet, on_both_stores},
    waiters::wait_until_idle,
};

on_both_stores!(
    one_of_many_computes,
    one_of_many_computes_under_lock,
    one_of_many_computes_and_records,
    later_caller_computes_again,
    processes_take_turns,
    fleet_computes_once,
    other_keys_are_computed_apart,
    other_types_are_computed_apart,
    token_is_that_of_lock,
);

async fn of_many<K>(fleet: Fleet, options: SingleFlight<K>)
where
    K: Kind<usize> + Send + Sync + 'static,
{
    let locks = fleet.manager().await;
    let work = Work::that_waits();
    let calls: Vec<_> = (0..1000).map(|_| calling(&locks, options, &work)).collect();
    work.let_go();
    let (values, _) = sorted(&all(calls).await);
    assert_eq!(values, [1; 1000]);
    assert_eq!(work.begun(), 1);
    wait_until("nothing is left", || locks.in_hand().flights == 0);
    wait_until_idle(&locks);
}

async fn one_of_many_computes(fleet: Fleet) {
    of_many(fleet, LOCAL).await;
}

async fn one_of_many_computes_under_lock(fleet: Fleet) {
    of_many(fleet, LOCKED).await;
}

async fn one_of_many_computes_and_records(fleet: Fleet) {
    of_many(fleet, RECORDED).await;
}

async fn later_caller_computes_again(fleet: Fleet) {
    let locks = fleet.manager().await;
    let work = Work::that_is_done();
    assert_eq!(call(locks.clone(), LOCKED, work.clone()).await.ok(), Some(1));
    assert_eq!(call(locks.clone(), LOCKED, work.clone()).await.ok(), Some(2));
    assert_eq!(call(locks.clone(), LOCAL, work.clone()).await.ok(), Some(3));
}

/// Without a record each process computes, but not two at once, unless the flight is local.
async fn processes_take_turns(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let work = Work::that_waits();
    let first = tokio::spawn(call(here.clone(), LOCKED, work.clone()));
    wait_until("the first computes", || work.begun() == 1);
    let second = tokio::spawn(call(there.clone(), LOCKED, work.clone()));
    let local = tokio::spawn(call(there.clone(), LOCAL, work.clone()));
    wait_until("the local one computes", || work.begun() == 2);
    assert!(!first.is_finished() && !second.is_finished());
    work.let_go();
    assert_eq!(first.await.expect("no panic").ok(), Some(1));
    assert_eq!(local.await.expect("no panic").ok(), Some(2));
    assert_eq!(second.await.expect("no panic").ok(), Some(3));
}

async fn fleet_computes_once(fleet: Fleet) {
    let work = Work::that_waits();
    let mut calls = Vec::new();
    for _ in 0..4 {
        let locks = fleet.manager().await;
        calls.extend((0..50).map(|_| calling(&locks, RECORDED, &work)));
    }
    work.let_go();
    let (values, _) = sorted(&all(calls).await);
    assert_eq!(values, [1; 200]);
    assert_eq!(work.begun(), 1);
}

async fn other_keys_are_computed_apart(fleet: Fleet) {
    let locks = fleet.manager().await;
    for number in 0..3_u32 {
        let key = LockKey::new("room").part(number);
        let value = locks.single_flight(key, &RECORDED, || async { Ok::<_, Infallible>(number) });
        assert_eq!(value.await.ok(), Some(number));
    }
}

async fn other_types_are_computed_apart(fleet: Fleet) {
    let locks = fleet.manager().await;
    for keep in [LOCAL, LOCAL.keep(super::HOUR)] {
        let number = locks.single_flight("room", &keep, || async {
            // While that of another type is under way.
            let text = async || Ok::<_, Infallible>("text".to_owned());
            let text = locks.single_flight("room", &keep, text).await.expect("no error");
            Ok::<_, Infallible>(text.len())
        });
        assert_eq!(number.await.ok(), Some(4));
    }
}

async fn token_is_that_of_lock(fleet: Fleet) {
    let locks = fleet.manager().await;
    let before = locks.acquire("room", &super::PATIENT).await.expect("it is free").token();
    let compute = |token| async move { Ok::<_, Infallible>(token) };
    let token = locks.single_flight_fenced("room", &RECORDED, compute).await.expect("no error");
    assert!(token > before);
    let after = locks.acquire("room", &super::PATIENT).await.expect("it is free").token();
    assert!(after > token);
}
