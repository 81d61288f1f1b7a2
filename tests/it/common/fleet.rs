//! Several managers on one store, as the processes of a fleet are.

use std::time::Duration;

use cache_lock::{
    LockError, LockManager, LockManagerBuilder, LockOptions, LostReason, MemoryStore,
};
use test_support::RedisServer;

/// A server of its own, or a store in memory of its own.
pub(crate) enum Fleet {
    Memory(MemoryStore),
    Redis(RedisServer),
}

impl Fleet {
    pub(crate) fn memory() -> Self {
        Self::Memory(MemoryStore::new())
    }

    pub(crate) fn redis() -> Self {
        Self::Redis(RedisServer::start())
    }

    pub(crate) async fn manager(&self) -> LockManager {
        self.build(LockManager::builder()).await
    }

    pub(crate) async fn build(&self, builder: LockManagerBuilder) -> LockManager {
        match self {
            Self::Memory(store) => builder.in_memory(store.clone()),
            Self::Redis(server) => builder.connect(&server.url()).await,
        }
        .expect("the store is there")
    }

    /// A manager that has no connection yet.
    pub(crate) fn cold_manager(&self, builder: LockManagerBuilder) -> LockManager {
        match self {
            Self::Memory(store) => builder.in_memory(store.clone()),
            Self::Redis(server) => builder.connect_lazy(&server.url()),
        }
        .expect("the settings are valid")
    }

    pub(crate) fn server(&self) -> Option<&RedisServer> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(server) => Some(server),
        }
    }

    /// The number of lock records.
    pub(crate) fn records(&self) -> usize {
        match self {
            Self::Memory(store) => store.len(),
            Self::Redis(server) => records(server),
        }
    }
}

/// The number of lock records on a server: all but the fences.
pub(crate) fn records(server: &RedisServer) -> usize {
    const COUNT: &str = "local records = 0 \
        for _, key in ipairs(redis.call('KEYS', '*')) do \
        if not key:find(':fence$') then records = records + 1 end end return records";
    server.cli(&["EVAL", COUNT, "0"]).parse().expect("it is a number")
}

/// Waits long for others, and holds long.
pub(crate) const PATIENT: LockOptions =
    LockOptions::new().timeout(Duration::from_secs(60)).expire(Duration::from_secs(60));

/// The shortest lease, without renewal.
pub(crate) const SHORT_LEASE: LockOptions = PATIENT.expire(Duration::from_millis(100)).renew(false);

/// How a lock was lost, if that is what the error says.
pub(crate) fn loss(error: &LockError) -> Option<LostReason> {
    match error {
        LockError::Lost { reason, .. } => Some(*reason),
        _ => None,
    }
}

/// Turns a hang into a failure; far longer than any test takes on a busy machine.
pub(crate) async fn guarded<F: Future>(test: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), test).await.expect("the test does not hang")
}

/// Makes a test of each function, for each store: `async fn(Fleet)`.
macro_rules! on_both_stores {
    ($($test:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                use crate::common::fleet::{Fleet, guarded};
                guarded(super::$test(Fleet::memory())).await;
            })+
        }
        mod redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                use crate::common::fleet::{Fleet, guarded};
                guarded(super::$test(Fleet::redis())).await;
            })+
        }
    };
}
pub(crate) use on_both_stores;
