//! The values that single flights record beside their locks.

use std::time::Duration;

use super::Store;
use crate::{clock::Instant, error::BackendError, key::LockKey, owner::OwnerToken};

/// The record of a single flight's value: each version of a key's values has its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ValueName {
    pub(crate) key: LockKey,
    pub(crate) version: u32,
}

#[cfg(feature = "redis")]
impl ValueName {
    /// In Redis. Version 0 has the plain name, `room:{room}:result`, and version 2 has
    /// `room:{room}:v2:result`. The last part is the same, so no key of a lock can have this name, and
    /// the digit before it tells it from all records without a version.
    pub(crate) fn in_redis(&self) -> String {
        let mut name = self.key.result_key().to_string();
        if self.version != 0
            && let Some(end) = name.rfind(':')
        {
            name.insert_str(end, &format!(":v{}", self.version));
        }
        name
    }
}

/// A value that a single flight has recorded, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredValue {
    pub(crate) text: Vec<u8>,
    /// How long the record lasts; zero if that was not asked for.
    pub(crate) remaining: Duration,
}

#[cfg_attr(
    not(feature = "redis"),
    expect(unused_variables, reason = "the store in memory has neither connections nor failures")
)]
impl Store {
    /// The value recorded beside a lock, and with `aged` how long it lasts.
    pub(crate) async fn recorded(
        &self,
        name: &ValueName,
        aged: bool,
        give_up: Instant,
    ) -> Result<Option<StoredValue>, BackendError> {
        match self {
            Self::Memory(store) => Ok(store.recorded(name)),
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.recorded(name, aged, give_up).await,
        }
    }

    /// Records a value beside a lock for a time. False if the lock is not held under the token.
    pub(crate) async fn record(
        &self,
        name: &ValueName,
        token: &OwnerToken,
        text: &str,
        lasts: Duration,
        give_up: Instant,
    ) -> Result<bool, BackendError> {
        match self {
            Self::Memory(store) => Ok(store.record(name, token, text, lasts)),
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.record(name, token, text, lasts, give_up).await,
        }
    }
}
