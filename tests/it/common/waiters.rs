//! The waiters of the lock `room`, and what is left when there are none.

use cache_lock::{InHand, LockManager};
use test_support::{RedisServer, wait_until};

/// The tokens on the waiting list of `room`, in order.
pub(crate) fn listed(server: &RedisServer) -> Vec<String> {
    let listed = "return table.concat(redis.call('ZRANGE', KEYS[1], 0, -1), ' ')";
    let listed = server.cli(&["EVAL", listed, "1", "room:{room}:waiting"]);
    listed.split_whitespace().map(str::to_owned).collect()
}

/// Waits until this many managers are on the waiting list of `room`.
pub(crate) fn wait_until_listed(server: &RedisServer, managers: usize) {
    wait_until(&format!("{managers} are listed"), || listed(server).len() == managers);
}

/// Waits until a manager has nothing in hand but connections.
pub(crate) fn wait_until_idle(locks: &LockManager) {
    wait_until("nothing is in hand", || {
        let InHand { keys, leases, tasks, timers, .. } = locks.in_hand();
        (keys, leases, tasks, timers) == (0, 0, 0, 0)
    });
}

/// Waits until nothing is left on a server but fences.
pub(crate) fn wait_until_clean(server: &RedisServer) {
    wait_until("nothing is left but fences", || crate::common::fleet::records(server) == 0);
}
