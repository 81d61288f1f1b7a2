//! Where locks are kept.

use std::{fmt::Debug, time::Duration};

use tokio::runtime::Handle;

use crate::{
    clock::Instant,
    error::BackendError,
    key::LockKey,
    protocol::messages::{
        AcquireError, AcquireRequest, AcquireResponse, Extended, Extension, Progress,
        ReleaseOutcome, ReleaseRequest,
    },
};

pub(crate) mod memory;
#[cfg(feature = "redis")]
pub(crate) mod redis;
#[cfg(all(feature = "serde", feature = "single-flight"))]
pub(crate) mod values;

/// The stores, in one type: dispatch without boxing a future per call.
///
/// It is not public, and no trait: a store has to keep promises about atomicity, order and time
/// that cannot be written down as one. One suite of tests runs on all of them.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    /// In this process.
    Memory(memory::MemoryStore),
    /// On a Redis server.
    #[cfg(feature = "redis")]
    Redis(redis::RedisStore),
}

#[cfg_attr(
    not(feature = "redis"),
    expect(unused_variables, reason = "the store in memory has neither connections nor failures")
)]
impl Store {
    /// The store is in this process, so its answers need no waiting.
    pub(crate) fn answers_at_once(&self) -> bool {
        match self {
            Self::Memory(_) => true,
            #[cfg(feature = "redis")]
            Self::Redis(_) => false,
        }
    }

    /// Asks for a lock. `None` if the answer takes time: then [`acquire`](Self::acquire) asks.
    pub(crate) fn acquire_now(&self, request: &AcquireRequest) -> Option<AcquireResponse> {
        match self {
            Self::Memory(store) => Some(store.acquire(request)),
            #[cfg(feature = "redis")]
            Self::Redis(_) => None,
        }
    }

    /// Ends a lease or a wait. `None` if the answer takes time: then [`release`](Self::release) does.
    pub(crate) fn release_now(
        &self,
        key: &LockKey,
        request: &ReleaseRequest,
    ) -> Option<ReleaseOutcome> {
        match self {
            Self::Memory(store) => Some(store.release(key, &request.token)),
            #[cfg(feature = "redis")]
            Self::Redis(_) => None,
        }
    }

    /// Asks for a lock, over the connection of a runtime or, without one, of the driver. Waits until
    /// the connection has room for the request, and from then on for the time of an attempt.
    /// `progress` is told of the first, if there is no room, and then of the second.
    ///
    /// # Cancel safety
    /// Dropped before its answer, what it may have taken is taken back in the background, and its
    /// tokens are over.
    pub(crate) async fn acquire(
        &self,
        request: &AcquireRequest,
        runtime: Option<&Handle>,
        progress: &impl Fn(Progress),
    ) -> Result<AcquireResponse, AcquireError> {
        match self {
            Self::Memory(store) => Ok(store.acquire(request)),
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.acquire(request, runtime, progress).await,
        }
    }

    /// Waits until a runtime's connection stands still while the server answers over another one, for
    /// `patience` at least.
    pub(crate) async fn stalled(&self, runtime: &Handle, patience: Duration) {
        match self {
            Self::Memory(_) => std::future::pending().await,
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.stalled(runtime, patience).await,
        }
    }

    /// Extends leases so that each lasts for its time from now, if it would end sooner. Never
    /// creates a record. Answers in the order of the leases, and tells when the request was sent.
    ///
    /// At `overdue` it calls `on_overdue`, and goes on waiting for the answer until `give_up`.
    pub(crate) async fn extend(
        &self,
        leases: &[Extension],
        overdue: Instant,
        on_overdue: impl FnOnce(&BackendError),
        give_up: Instant,
    ) -> Result<(Instant, Vec<Extended>), BackendError> {
        match self {
            Self::Memory(store) => Ok(store.extend(leases)),
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.extend(leases, overdue, on_overdue, give_up).await,
        }
    }

    /// Ends a lease or a wait: the lock is its next holder's, or free.
    pub(crate) async fn release(
        &self,
        key: &LockKey,
        request: &ReleaseRequest,
        give_up: Instant,
    ) -> Result<ReleaseOutcome, BackendError> {
        match self {
            Self::Memory(store) => Ok(store.release(key, &request.token)),
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.release(key, request, give_up).await,
        }
    }

    /// The same, tried again until there is an answer or the record has run out.
    pub(crate) async fn release_at_last(&self, key: &LockKey, request: &ReleaseRequest) {
        match self {
            Self::Memory(store) => drop(store.release(key, &request.token)),
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.release_at_last(key, request).await,
        }
    }

    /// The number of connections that are open, or being opened.
    pub(crate) fn connections(&self) -> usize {
        match self {
            Self::Memory(_) => 0,
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.connections(),
        }
    }

    /// Where it is, without a password.
    pub(crate) fn server(&self) -> &str {
        match self {
            Self::Memory(_) => "memory",
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.server(),
        }
    }

    /// Has the driver's connection opened, and tries until `until`. For the driver.
    pub(crate) async fn reconnect(&self, until: Instant) {
        match self {
            Self::Memory(_) => {}
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.reconnect(until).await,
        }
    }

    /// Waits until a connection was lost, or opened after that: the store may have lost its data.
    pub(crate) async fn reconnected(&self) {
        match self {
            Self::Memory(_) => std::future::pending().await,
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.reconnected().await,
        }
    }

    /// Makes ready for pushes, if the store has any and is not ready yet.
    pub(crate) fn attend(&self) {
        match self {
            Self::Memory(_) => {}
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.attend(),
        }
    }

    /// Whether this manager is told by push of what happens to its keys, as far as is known: it does
    /// not listen before callers of one process contend for a lock.
    pub(crate) fn tells(&self) -> bool {
        match self {
            Self::Memory(_) => true,
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.tells(),
        }
    }
}
