//! Runtimes whose time stands still: a body blocks the thread, or a test has paused the clock.

use std::{
    thread,
    time::{Duration, Instant},
};

use cache_lock::{LockGuard, LockOptions};
use tokio::{runtime::Runtime, time::sleep};

use super::{current_thread, multi_thread, on_both_stores_outside_of_tokio};
use crate::common::fleet::{Fleet, PATIENT};

on_both_stores_outside_of_tokio!(
    body_that_blocks_its_thread_keeps_its_lease,
    paused_test_takes_turns,
    paused_test_holds_for_longer_than_lease,
    paused_test_waits_for_its_whole_timeout,
);

/// Two thirds of it are left for a renewal: no load keeps a thread from running for so long.
const EXPIRE: Duration = Duration::from_secs(9);
const RENEWED: LockOptions = PATIENT.expire(EXPIRE);
const HOUR: Duration = Duration::from_secs(3600);

fn body_that_blocks_its_thread_keeps_its_lease(fleet: Fleet) {
    let (here, there) =
        pollster::block_on(async { (fleet.manager().await, fleet.manager().await) });
    let holds = |make: fn() -> Runtime, key: &'static str| {
        let body = async |lock: &LockGuard| {
            block_until_renewed(lock);
            // Another process asks, while this one is still blocked.
            pollster_thread(|| pollster::block_on(there.try_acquire(key, &PATIENT)))
        };
        let other = make().block_on(here.run(key, &RENEWED, body)).expect("held to the end");
        assert!(other.expect("no failure").is_none());
    };
    thread::scope(|scope| {
        scope.spawn(|| holds(current_thread, "current_thread"));
        scope.spawn(|| holds(multi_thread, "multi_thread"));
    });
}

/// Blocks the thread until the lease lasts for longer than it did.
fn block_until_renewed(lock: &LockGuard) {
    let mut left = lock.remaining();
    loop {
        thread::sleep(Duration::from_millis(10));
        assert!(!lock.is_lost(), "it is renewed before its end");
        let now = lock.remaining();
        if now > left {
            return;
        }
        left = now;
    }
}

/// Runs a closure on a thread of its own, and blocks until it has ended.
fn pollster_thread<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(run).join()).expect("no panic")
}

/// A runtime whose clock is paused, as that of `#[tokio::test(start_paused = true)]`: when all
/// tasks wait, it jumps to the next timer.
fn paused<T>(test: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().expect("a runtime").block_on(test)
}

fn paused_test_takes_turns(fleet: Fleet) {
    paused(async {
        let (here, there) = (fleet.manager().await, fleet.manager().await);
        let start = tokio::time::Instant::now();
        let section = async |number: u32| {
            let locks = if number.is_multiple_of(2) { &here } else { &there };
            // An hour of the test's clock is nothing to the lease.
            let body = async |lock: &LockGuard| {
                sleep(HOUR).await;
                assert!(!lock.is_lost());
            };
            locks.run("job", &PATIENT, body).await.expect("its turn comes");
        };
        tokio::join!(section(0), section(1), section(2), section(3));
        assert!(start.elapsed() >= 4 * HOUR, "one after another, by the test's own clock");
    });
    assert_eq!(fleet.records(), 0);
}

fn paused_test_holds_for_longer_than_lease(fleet: Fleet) {
    paused(async {
        let locks = fleet.manager().await;
        let body = async |lock: &LockGuard| {
            sleep(HOUR).await;
            // By the clock on the wall, while the test's stands still.
            block_until_renewed(lock);
        };
        locks.run("job", &RENEWED, body).await.expect("held to the end");
    });
}

/// A wait is measured by the clock on the wall: the test's timers do not cut it short.
fn paused_test_waits_for_its_whole_timeout(fleet: Fleet) {
    paused(async {
        let (here, there) = (fleet.manager().await, fleet.manager().await);
        let timeout = Duration::from_millis(300);
        let guard = here.acquire("job", &PATIENT).await.expect("free");
        let waiting = async {
            let asked = Instant::now();
            let error = there.acquire("job", &PATIENT.timeout(timeout)).await.expect_err("held");
            (error, asked.elapsed())
        };
        let ((error, waited), ()) = tokio::join!(waiting, sleep(HOUR));
        assert!(error.is_contended(), "{error}");
        assert!(waited >= timeout, "it has waited for as long as it was to");
        guard.release().await.expect("no failure");
    });
}
