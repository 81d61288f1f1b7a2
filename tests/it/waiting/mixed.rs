//! Callers with different options wait for one lock.

use std::time::Duration;

use cache_lock::{LockManager, LockOptions};
use test_support::wait_until;
use tokio::task::JoinSet;

use super::{LONG, SECOND, acquiring, listed, poll_once, wait_until_idle};
use crate::common::fleet::{Fleet, guarded, on_both_stores};

on_both_stores! {
    each_gets_lease_that_it_asks_for,
    each_waits_for_as_long_as_it_said,
}

const EXPIRES: [Duration; 5] = [
    SECOND.saturating_mul(60),
    Duration::from_millis(100),
    SECOND,
    SECOND.saturating_mul(10),
    Duration::from_millis(400),
];

async fn each_gets_lease_that_it_asks_for(fleet: Fleet) {
    let locks = fleet.manager().await;
    let guard = locks.acquire("room", &LONG).await.expect("it is free");
    let mut line = JoinSet::new();
    for number in 0..60 {
        let (expire, renew) = (EXPIRES[number % 5], number % 2 == 0);
        let mut options = LONG.expire(expire).renew(renew);
        if number % 4 == 0 {
            options = options.max_hold(expire * 3);
        }
        let mut waiting = acquiring(&locks, options);
        poll_once(&mut waiting);
        line.spawn(async move { (expire, renew, waiting.await) });
    }
    drop(guard);
    // In the order of their grants: a waiter that a busy core does not poll in time stands in line again.
    while let Some(waited) = guarded(line.join_next()).await {
        let (expire, renew, acquired) = waited.expect("no panic");
        let guard = acquired.expect("it gets its turn");
        let remaining = guard.remaining();
        let ratio = remaining.as_secs_f64() / expire.as_secs_f64();
        // A core may be blocked for a second until it is looked at here, and a short lease be over.
        let least = match (renew, expire < 10 * SECOND) {
            (_, true) => -1.0,
            (true, false) => 0.4,
            (false, false) => 0.8,
        };
        assert!(ratio > least, "{remaining:?} of {expire:?}, renew {renew}");
        assert!(ratio <= 1.0, "{remaining:?} of {expire:?}");
        if let Some(server) = fleet.server() {
            // If the holder dies now, no waiter waits for much longer than its timeout.
            let left: f64 = server.cli(&["PTTL", "room"]).parse().expect("a number");
            assert!(left / 1000.0 <= expire.as_secs_f64() * 1.02 + 0.01, "{left} of {expire:?}");
        }
        drop(guard);
    }
    wait_until_idle(&locks);
}

async fn each_waits_for_as_long_as_it_said(fleet: Fleet) {
    let (locks, holder) = (fleet.manager().await, fleet.manager().await);
    // Another manager holds it, then the same manager.
    for holder in [&holder, &locks] {
        let guard = holder.acquire("room", &LONG).await.expect("it is free");
        let timeouts = [0, 30, 60, 10, 0, 50, 20];
        let impatient: Vec<_> = timeouts
            .into_iter()
            .map(|timeout| {
                let options = LONG.timeout(Duration::from_millis(timeout));
                tokio::spawn(acquiring(&locks, options))
            })
            .collect();
        let patient: Vec<_> =
            (0..5).map(|_| tokio::spawn(one_section(locks.clone(), LONG))).collect();
        for waiting in impatient {
            let error = guarded(waiting).await.expect("no panic").expect_err("it is held");
            assert!(error.is_contended(), "{error}");
        }
        assert_eq!(locks.in_hand().keys, 1);
        drop(guard);
        for waiting in patient {
            guarded(waiting).await.expect("no panic");
        }
        wait_until_idle(&locks);
    }
    if let Some(server) = fleet.server() {
        wait_until("the waiting list is empty", || listed(server).is_empty());
    }
}

async fn one_section(locks: LockManager, options: LockOptions) {
    let guard = locks.acquire("room", &options).await.expect("it gets its turn");
    guard.release().await.expect("the store answers");
}

/// Its last request, at the end of its time, does not ask to wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiter_that_gives_up_leaves_list() {
    let fleet = Fleet::redis();
    let server = fleet.server().expect("it is one");
    let locks = fleet.manager().await;
    server.cli(&["SET", "room", "theirs", "NX"]);
    for timeout in 1..100 {
        let options = LONG.timeout(Duration::from_millis(timeout));
        let error = guarded(acquiring(&locks, options)).await.expect_err("it is held");
        assert!(error.is_contended(), "{error}");
        wait_until_idle(&locks);
        assert!(listed(server).is_empty(), "after {timeout} ms");
    }
}
