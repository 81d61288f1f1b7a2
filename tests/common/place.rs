//! A store, for tests that hold on both of them.

use std::time::Duration;

use cache_lock::{InHand, LockManager, LockManagerBuilder, MemoryStore};
use test_support::{RedisServer, wait_until};

/// A lease that never ends by itself while a test runs.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

pub(crate) enum Place {
    Memory(MemoryStore),
    Redis(RedisServer),
}

impl Place {
    pub(crate) fn both() -> [Self; 2] {
        [Self::Memory(MemoryStore::new()), Self::Redis(RedisServer::start())]
    }

    /// A manager that has no connection yet, as that of another process.
    pub(crate) fn manager(&self) -> LockManager {
        // Nothing here tests a slow server, so a busy machine must not look like one.
        self.manager_with(LockManager::builder().attempt_timeout(Duration::from_secs(30)))
    }

    pub(crate) fn manager_with(&self, builder: LockManagerBuilder) -> LockManager {
        let builder = builder.expire(LONG).timeout(LONG);
        let manager = match self {
            Self::Memory(store) => builder.in_memory(store.clone()),
            Self::Redis(server) => builder.lazy(&server.url()),
        };
        manager.expect("the settings are valid")
    }

    /// Whether there is a record of the lock. In memory: of any lock.
    pub(crate) fn has(&self, key: &str) -> bool {
        match self {
            Self::Memory(store) => !store.is_empty(),
            Self::Redis(server) => server.cli(&["EXISTS", key]) == "1",
        }
    }
}

/// Waits until the manager has nothing in hand but connections.
pub(crate) fn wait_until_idle(locks: &LockManager) {
    wait_until("nothing is in hand", || {
        let InHand { leases, tasks, timers, .. } = locks.in_hand();
        (leases, tasks, timers) == (0, 0, 0)
    });
}
