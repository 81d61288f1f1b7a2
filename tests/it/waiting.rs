//! Waiting: the local queue and the hand-over between managers, with and without faults.

mod between;
mod cancelled;
mod crew;
mod fairness;
mod foreign;
mod leaks;
mod local;
mod mixed;
mod soak;
mod unpolled;

use std::{
    pin::Pin,
    task::{Context, Waker},
    time::Duration,
};

use cache_lock::{LockError, LockGuard, LockManager, LockOptions};
use test_support::RedisServer;

use crate::common::waiters::{listed, wait_until_clean, wait_until_idle, wait_until_listed};

const SECOND: Duration = Duration::from_secs(1);

/// Longer than a test takes: no lease expires.
const LONG: LockOptions =
    LockOptions::new().expire(SECOND.saturating_mul(3600)).timeout(SECOND.saturating_mul(50));

type Acquiring = Pin<Box<dyn Future<Output = Result<LockGuard, LockError>> + Send>>;

fn acquiring(locks: &LockManager, options: LockOptions) -> Acquiring {
    let locks = locks.clone();
    Box::pin(async move { locks.acquire("room", &options).await })
}

/// Polls a wait once, as in a `select!` whose other branch goes on.
fn poll_once(acquiring: &mut Acquiring) {
    let polled = acquiring.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "{polled:?}");
}

/// The inbox that a token names.
fn inbox(token: &str) -> &str {
    token.rsplit_once(':').expect("a token").0
}

/// The connections over which managers listen, by their numbers.
fn inbox_connections(server: &RedisServer) -> Vec<String> {
    let clients = server.cli(&["CLIENT", "LIST"]);
    let inboxes = clients.lines().filter(|line| line.contains(" sub=1 "));
    let number = |line: &str| line.split([' ', '=']).nth(1).expect("an id").to_owned();
    inboxes.map(number).collect()
}

/// Closes the connections over which managers listen.
fn kill_inboxes(server: &RedisServer) {
    for id in inbox_connections(server) {
        // One may have gone by itself.
        let _ = server.command(&["CLIENT", "KILL", "ID", &id]);
    }
}
