//! The record of a value in the store.

use std::{fmt::Display, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use super::fingerprint::fingerprint;
use crate::{
    clock::Instant,
    error::LockError,
    guard::LockGuard,
    key::LockKey,
    log,
    manager_core::Core,
    store::values::{StoredValue, ValueName},
};

/// How values `T` are recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueRecord<T> {
    ttl: Duration,
    stale: Duration,
    max_size: usize,
    encode: fn(&T) -> serde_json::Result<String>,
    decode: fn(&[u8]) -> serde_json::Result<T>,
    fingerprint: fn(&T) -> serde_json::Result<u64>,
}

/// A value that was found.
pub(super) struct Found<T> {
    pub(super) value: T,
    pub(super) is_stale: bool,
}

/// What a look at the record finds.
pub(super) enum Lookup<T> {
    Found(Found<T>),
    Missing,
    Unreadable(Unreadable),
}

/// A record of another type, or of another version of the program.
pub(super) struct Unreadable {
    ends: Instant,
    error: serde_json::Error,
}

/// Where a computed value goes.
pub(super) enum Destination {
    /// Into the store, as this text.
    Store(String),
    /// Into the memory of its process, for this time.
    Process(Duration),
    /// To the callers that have asked by now.
    Nowhere,
}

impl<T: Serialize + DeserializeOwned> ValueRecord<T> {
    /// As JSON, which an operator can read.
    pub(super) fn json(ttl: Duration, stale: Duration, max_size: usize) -> Self {
        Self {
            ttl,
            stale,
            max_size,
            encode: serde_json::to_string,
            decode: |text| serde_json::from_slice(text),
            fingerprint,
        }
    }
}

impl<T> ValueRecord<T> {
    /// Reads what is recorded, in one round trip; in one more if it cannot be read, for the time that
    /// is left of it.
    pub(super) async fn find(
        &self,
        manager: &Core,
        name: &ValueName,
        expire: Duration,
    ) -> Result<Lookup<T>, LockError> {
        let key = &name.key;
        let can_be_stale = !self.stale.is_zero();
        let mut aged = can_be_stale;
        loop {
            let started = Instant::now();
            let reading = manager.store.recorded(name, aged, manager.attempt_end(started, expire));
            let recorded = reading.await.map_err(|source| {
                let waited = started.elapsed();
                log::warn!(%key, ?waited, error = %source, "recorded value not read");
                LockError::backend(key, waited, source)
            })?;
            let Some(StoredValue { text, remaining }) = recorded else {
                return Ok(Lookup::Missing);
            };
            match (self.decode)(&text) {
                Ok(value) => {
                    let is_stale = can_be_stale && remaining <= self.stale;
                    return Ok(Lookup::Found(Found { value, is_stale }));
                }
                Err(error) if aged => {
                    let ends = Instant::now() + remaining;
                    return Ok(Lookup::Unreadable(Unreadable { ends, error }));
                }
                Err(_) => aged = true,
            }
        }
    }

    /// Decides where a value goes, and logs why if that is not the store.
    pub(super) fn place(
        &self,
        key: &LockKey,
        value: &T,
        unreadable: Option<Unreadable>,
    ) -> Destination {
        let now = Instant::now();
        if let Some(Unreadable { ends, error }) = unreadable
            && now < ends
        {
            let kept = self.ttl.min(ends - now);
            log::warn!(
                %key, %error, ?kept,
                "value not recorded: the record there is of another type or version, and is left \
                 alone; until it ends this process keeps its own value (a version of the record would \
                 give each program its own)"
            );
            return Destination::Process(kept);
        }
        let not_kept = |error: &dyn Display| {
            log::warn!(
                %key, %error, kept = ?self.ttl,
                "value not recorded: JSON does not keep it; this process keeps its own value"
            );
            Destination::Process(self.ttl)
        };
        let text = match (self.encode)(value) {
            Ok(text) => text,
            Err(error) => return not_kept(&error),
        };
        let (size, max_size) = (text.len(), self.max_size);
        if size > max_size {
            log::warn!(%key, size, max_size, "value not recorded: it is too large");
            return Destination::Nowhere;
        }
        let is_same = (self.decode)(text.as_bytes())
            .and_then(|read| Ok((self.fingerprint)(&read)? == (self.fingerprint)(value)?));
        match is_same {
            Ok(true) => Destination::Store(text),
            Ok(false) => not_kept(
                &"it reads back as another value: JSON has no NaN, no infinity, and one `null` for \
                  `None`, `Some(None)` and `()`",
            ),
            Err(error) => not_kept(&format_args!("it cannot be read back: {error}")),
        }
    }

    /// Records a value, if the lock is still ours. A failure is logged: the value is there, and
    /// a caller that finds no record computes another.
    pub(super) async fn write(
        &self,
        manager: &Core,
        guard: &LockGuard,
        name: &ValueName,
        text: &str,
    ) {
        let (key, size) = (guard.key(), text.len());
        let (owner, expire) = guard.owner();
        let give_up = manager.attempt_end(Instant::now(), expire);
        let lasts = self.ttl + self.stale;
        match manager.store.record(name, owner, text, lasts, give_up).await {
            Ok(true) => log::debug!(%key, fence = %guard.token(), size, "value recorded"),
            Ok(false) => log::warn!(%key, "value not recorded: the lock is not ours any more"),
            Err(error) => log::warn!(%key, %error, "value not recorded"),
        }
    }
}
