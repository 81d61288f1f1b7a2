//! Stale values while a caller refreshes them.

use std::time::Duration;

use cache_lock::{LockManager, SingleFlight, single_flight::Recorded};
use test_support::{Direction, Fault, Proxy, wait_until};

use super::{HOUR, LOCKED, RECORDED, Work, call, calling};
use crate::common::fleet::{Fleet, on_both_stores};

on_both_stores!(
    one_refreshes_and_others_do_not_wait,
    refresh_that_fails_leaves_stale_value,
    refresh_that_is_dropped_leaves_stale_value,
    value_that_is_over_is_not_returned,
);

/// Takes what is recorded for an hour for stale, and records for two.
const STALE: SingleFlight<Recorded> = RECORDED.stale(HOUR);

/// A stale value, by the options above: the first computation's.
async fn recorded(locks: &LockManager, work: &Work) {
    let options = LOCKED.record(HOUR);
    work.go.add_permits(1);
    assert_eq!(call(locks.clone(), options, work.clone()).await.ok(), Some(1));
    work.go.forget_permits(1);
}

async fn one_refreshes_and_others_do_not_wait(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let work = Work::that_waits();
    recorded(&here, &work).await;
    let refreshing = tokio::spawn(call(here.clone(), STALE, work.clone()));
    wait_until("one computes", || work.begun() == 2);
    for locks in [&here, &there, &here, &there] {
        assert_eq!(call(locks.clone(), STALE, work.clone()).await.ok(), Some(1));
    }
    // That its own process is at it is known without asking for the lock.
    let scripts = || fleet.server().map_or(0, |server| server.calls("evalsha"));
    let before = scripts();
    assert_eq!(call(here.clone(), STALE, work.clone()).await.ok(), Some(1));
    assert!(scripts() <= before + 1, "{before}, {}", scripts());
    work.let_go();
    assert_eq!(refreshing.await.expect("no panic").ok(), Some(2));
    for locks in [&here, &there] {
        assert_eq!(call(locks.clone(), STALE, work.clone()).await.ok(), Some(2));
    }
    assert_eq!(work.begun(), 2);
    assert_eq!(here.in_hand().flights, 0);
}

async fn refresh_that_fails_leaves_stale_value(fleet: Fleet) {
    let locks = fleet.manager().await;
    let work = Work::that_is_done();
    recorded(&locks, &work).await;
    let work = Work::that_is_done().failing(2);
    for number in 1..3 {
        assert_eq!(call(locks.clone(), STALE, work.clone()).await.ok(), Some(1));
        assert_eq!(work.begun(), number, "each caller that finds no computation tries");
    }
    assert_eq!(call(locks.clone(), STALE, work.clone()).await.ok(), Some(3));
}

async fn refresh_that_is_dropped_leaves_stale_value(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let work = Work::that_waits();
    recorded(&here, &work).await;
    let refreshing = tokio::spawn(calling(&here, STALE, &work));
    wait_until("one computes", || work.begun() == 2);
    refreshing.abort();
    assert!(refreshing.await.is_err());
    work.let_go();
    wait_until("its lock is free", || fleet.records() == usize::from(fleet.server().is_some()));
    assert_eq!(call(there.clone(), STALE, work.clone()).await.ok(), Some(3));
    assert_eq!(call(here.clone(), STALE, work.clone()).await.ok(), Some(3));
}

async fn value_that_is_over_is_not_returned(fleet: Fleet) {
    let locks = fleet.manager().await;
    let work = Work::that_is_done();
    let brief = LOCKED.record(Duration::from_millis(1)).stale(Duration::from_millis(1));
    assert_eq!(call(locks.clone(), brief, work.clone()).await.ok(), Some(1));
    tokio::time::sleep(Duration::from_millis(10)).await;
    let failing = Work::that_is_done().failing(1);
    assert!(call(locks.clone(), brief, failing).await.is_err());
}

/// Between its look at the stale value and its lock, another one has recorded a new value.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_refresh_gets_new_value() {
    let fleet = Fleet::redis();
    let server = fleet.server().expect("it is on Redis");
    let proxy = Proxy::start(server.port());
    let patient = LockManager::builder().attempt_timeout(Duration::from_secs(30));
    let late = patient.connect(&server.url_through(proxy.port())).await.expect("it is there");
    let here = fleet.manager().await;
    let work = Work::that_waits();
    recorded(&here, &work).await;
    // The server knows the script, and there is a connection.
    for locks in [&here, &late] {
        let fresh = RECORDED.stale(Duration::from_secs(60));
        assert_eq!(call(locks.clone(), fresh, work.clone()).await.ok(), Some(1));
    }
    work.let_go();

    proxy.set(Direction::Replies, Fault::Hold);
    let before = server.calls("evalsha");
    let refreshing = tokio::spawn(call(late, STALE, work.clone()));
    wait_until("it has looked", || server.calls("evalsha") > before);
    assert_eq!(call(here, STALE, work.clone()).await.ok(), Some(2));
    proxy.set(Direction::Replies, Fault::Pass);
    assert_eq!(refreshing.await.expect("no panic").ok(), Some(2));
    assert_eq!(work.begun(), 2);
}
