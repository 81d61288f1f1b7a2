//! Where locks are kept.

use std::{fmt::Debug, time::Duration};

use crate::{
    clock::Moment, error::BackendError, fence::FencingToken, key::LockKey, owner::OwnerToken,
};

pub(crate) mod memory;
#[cfg(feature = "redis")]
pub(crate) mod redis;

/// A place that keeps locks: the one seam between the manager and its stores.
///
/// It is not public: a store has to keep promises about atomicity, order and time that cannot be
/// written down as a trait. One suite of tests runs on all of them.
pub(crate) trait LockStore: Clone + Debug + Into<Store> + Send + Sync + 'static {
    /// Begins to acquire a key.
    fn claim(&self, key: &LockKey, owner: OwnerToken) -> impl Claim;

    /// Extends a lease of `owner` so that it lasts for `expire` from now, if it would end sooner.
    /// Never creates a record.
    fn extend(
        &self,
        key: &LockKey,
        owner: &OwnerToken,
        expire: Duration,
        give_up: Moment,
    ) -> impl Future<Output = Result<Extended, BackendError>> + Send;

    /// Removes the record of `owner`.
    fn release(
        &self,
        key: &LockKey,
        owner: &OwnerToken,
        give_up: Moment,
    ) -> impl Future<Output = Result<Released, BackendError>> + Send;

    /// The same without waiting, tried again until there is an answer or `until` has passed.
    fn release_detached(&self, key: LockKey, owner: OwnerToken, until: Moment);
}

/// One acquisition, from the first request to the grant.
///
/// Dropping it without a grant takes back what it may have acquired: a request whose reply was not
/// seen may have been granted, or may still be.
pub(crate) trait Claim: Send {
    /// Asks once, and gives up at `give_up`.
    fn ask(
        &mut self,
        expire: Duration,
        give_up: Moment,
    ) -> impl Future<Output = Result<Answer, BackendError>> + Send;
}

/// The answer to a [`Claim::ask`].
#[derive(Debug)]
pub(crate) enum Answer {
    Granted {
        owner: OwnerToken,
        fence: FencingToken,
        /// When the request was sent: the lease counts from here.
        sent_at: Moment,
    },
    Busy {
        /// How long the holder's lease lasts if it is not extended; `None` if it has no end.
        remaining: Option<Duration>,
    },
}

/// The answer to [`LockStore::extend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extended {
    Kept {
        sent_at: Moment,
    },
    /// The record is not there, or somebody else's.
    Gone,
}

/// What a release found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Released {
    /// The lock was ours to the end, and is free now.
    Released,
    /// The lease had ended before: somebody else may have held the lock since.
    AlreadyExpired,
    /// The connection broke before the answer came, and by the next try the lock was not ours any
    /// more: this call has released it, or the lease had ended before.
    Unknown,
}

/// The stores, in one type: dispatch without boxing a future per call.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    /// In this process.
    Memory(memory::MemoryStore),
    /// On a Redis server.
    #[cfg(feature = "redis")]
    Redis(redis::RedisStore),
}

/// Calls a method of whichever store it is.
macro_rules! each {
    ($store:expr, $inner:ident => $call:expr) => {
        match $store {
            Store::Memory($inner) => $call,
            #[cfg(feature = "redis")]
            Store::Redis($inner) => $call,
        }
    };
}

impl LockStore for Store {
    fn claim(&self, key: &LockKey, owner: OwnerToken) -> impl Claim {
        #[cfg(feature = "redis")]
        match self {
            Self::Memory(store) => AnyClaim::Memory(store.claim(key, owner)),
            Self::Redis(store) => AnyClaim::Redis(store.claim(key, owner)),
        }
        #[cfg(not(feature = "redis"))]
        each!(self, store => store.claim(key, owner))
    }

    async fn extend(
        &self,
        key: &LockKey,
        owner: &OwnerToken,
        expire: Duration,
        give_up: Moment,
    ) -> Result<Extended, BackendError> {
        each!(self, store => store.extend(key, owner, expire, give_up).await)
    }

    async fn release(
        &self,
        key: &LockKey,
        owner: &OwnerToken,
        give_up: Moment,
    ) -> Result<Released, BackendError> {
        each!(self, store => store.release(key, owner, give_up).await)
    }

    fn release_detached(&self, key: LockKey, owner: OwnerToken, until: Moment) {
        each!(self, store => store.release_detached(key, owner, until));
    }
}

#[cfg(feature = "redis")]
enum AnyClaim<M, R> {
    Memory(M),
    Redis(R),
}

#[cfg(feature = "redis")]
impl<M: Claim, R: Claim> Claim for AnyClaim<M, R> {
    async fn ask(&mut self, expire: Duration, give_up: Moment) -> Result<Answer, BackendError> {
        match self {
            Self::Memory(claim) => claim.ask(expire, give_up).await,
            Self::Redis(claim) => claim.ask(expire, give_up).await,
        }
    }
}
