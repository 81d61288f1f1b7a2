//! A manager serves any number of runtimes, one after another and at once, and callers without.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use cache_lock::{LockGuard, ReleaseOutcome};
use test_support::wait_until;
use tokio::runtime::Runtime;

use super::{current_thread, multi_thread, on_both_stores_outside_of_tokio};
use crate::common::fleet::{Fleet, PATIENT};

on_both_stores_outside_of_tokio!(
    one_manager_serves_runtimes_one_after_another,
    one_manager_serves_runtimes_at_once,
    resting_runtime_blocks_no_other,
    callers_need_no_runtime,
    guard_outlives_its_runtime,
);

fn one_manager_serves_runtimes_one_after_another(fleet: Fleet) {
    let locks = current_thread().block_on(fleet.manager());
    let mut last = None;
    for make in [current_thread, multi_thread, current_thread, multi_thread] {
        let body = async |lock: &LockGuard| lock.token();
        let token = make().block_on(locks.run("job", &PATIENT, body)).expect("it is free");
        assert!(Some(token) > last);
        last = Some(token);
    }
    wait_until("the connections are gone with the runtimes", || locks.in_hand().connections == 0);
}

fn one_manager_serves_runtimes_at_once(fleet: Fleet) {
    const RUNTIMES: u64 = 4;
    const ROUNDS: u64 = 20;
    let locks = current_thread().block_on(fleet.manager());
    let count = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..RUNTIMES {
            let (locks, count) = (&locks, &count);
            let make = if number.is_multiple_of(2) { current_thread } else { multi_thread };
            scope.spawn(move || {
                let body = async |_: &LockGuard| {
                    let seen = count.load(Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    count.store(seen + 1, Ordering::SeqCst);
                };
                make().block_on(async {
                    for _ in 0..ROUNDS {
                        locks.run("job", &PATIENT, body).await.expect("its turn comes");
                    }
                });
            });
        }
    });
    assert_eq!(count.load(Ordering::SeqCst), RUNTIMES * ROUNDS);
    // The driver's stays, over which they were told of each other.
    wait_until("the connections are gone with the runtimes", || locks.in_hand().connections <= 1);
}

/// The tasks of a current-thread runtime are not polled between two calls of its `block_on`, so its
/// connections can serve no other caller.
fn resting_runtime_blocks_no_other(fleet: Fleet) {
    let locks = current_thread().block_on(fleet.manager());
    let once = PATIENT.timeout(std::time::Duration::ZERO);
    let (resting, other) = (current_thread(), current_thread());
    let guard = resting.block_on(locks.acquire("resting", &once)).expect("free");
    let body = async |lock: &LockGuard| lock.token();
    other.block_on(locks.run("other", &once, body)).expect("the server answers");
    pollster::block_on(locks.run("outside", &once, body)).expect("the server answers");
    assert_eq!(pollster::block_on(guard.release()).expect("it answers"), ReleaseOutcome::Released);
    resting.block_on(locks.run("resting", &once, body)).expect("it goes on where it was");
}

fn callers_need_no_runtime(fleet: Fleet) {
    let (here, there) =
        pollster::block_on(async { (fleet.manager().await, fleet.manager().await) });
    pollster::block_on(async {
        let guard = here.acquire("job", &PATIENT).await.expect("free");
        assert!(there.try_acquire("job", &PATIENT).await.expect("no failure").is_none());
        guard.extend(std::time::Duration::from_secs(120)).await.expect("held");
        // The waiter is on another thread, and without a runtime as well.
        let waiter = thread::spawn(move || {
            let body = async |lock: &LockGuard| lock.token();
            pollster::block_on(there.run("job", &PATIENT, body))
        });
        let token = guard.token();
        assert_eq!(guard.release().await.expect("no failure"), ReleaseOutcome::Released);
        assert!(waiter.join().expect("no panic").expect("its turn comes") > token);
        here.shutdown().await;
    });
    assert_eq!(fleet.records(), 0);
}

fn guard_outlives_its_runtime(fleet: Fleet) {
    let locks = current_thread().block_on(fleet.manager());
    let acquire = |runtime: &Runtime| {
        runtime.block_on(locks.acquire("job", &PATIENT)).expect("the one before is released")
    };
    for make in [current_thread, multi_thread] {
        let first = make();
        let guard = acquire(&first);
        drop(first);
        assert!(!guard.is_lost());
        assert_eq!(make().block_on(guard.release()).expect("no failure"), ReleaseOutcome::Released);

        let first = make();
        let guard = acquire(&first);
        drop(first);
        let second = make();
        second.block_on(async move { drop(guard) });
        drop(second);
        wait_until("the drop has done its work", || fleet.records() == 0);
    }
}
