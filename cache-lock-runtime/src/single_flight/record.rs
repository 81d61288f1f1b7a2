//! The record of a value in the store.

use std::{pin::pin, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use super::{flights::Seat, lead::Call};
use crate::{
    acquire, clock::Moment, error::LockError, fence::FencingToken, guard::LockGuard, key::LockKey,
    log, manager::Inner, store::Recorded,
};

/// How values `T` are recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<T> {
    ttl: Duration,
    stale: Duration,
    max_size: usize,
    encode: fn(&T) -> serde_json::Result<String>,
    decode: fn(&[u8]) -> serde_json::Result<T>,
}

/// A value that was found.
pub(super) struct Found<T> {
    pub(super) value: T,
    pub(super) is_stale: bool,
}

impl<T: Serialize + DeserializeOwned> Record<T> {
    /// As JSON, which an operator can read.
    pub(super) fn json(ttl: Duration, stale: Duration, max_size: usize) -> Self {
        Self {
            ttl,
            stale,
            max_size,
            encode: serde_json::to_string,
            decode: |text| serde_json::from_slice(text),
        }
    }
}

impl<T> Record<T> {
    /// Reads what is recorded, in one round trip. What cannot be read, as it is of another type or
    /// of another version of the program, is not there.
    pub(super) async fn find(
        &self,
        manager: &Inner,
        key: &LockKey,
        expire: Duration,
    ) -> Result<Option<Found<T>>, LockError> {
        let started = Moment::now();
        let aged = !self.stale.is_zero();
        let reading = manager.store.recorded(key, aged, manager.attempt_end(started, expire));
        let recorded = reading.await.map_err(|source| {
            let waited = started.until(Moment::now());
            log::warn!(%key, ?waited, error = %source, "recorded value not read");
            LockError::backend(key, waited, source)
        })?;
        let Some(Recorded { text, remaining }) = recorded else { return Ok(None) };
        match (self.decode)(&text) {
            Ok(value) => Ok(Some(Found { value, is_stale: aged && remaining <= self.stale })),
            Err(error) => {
                log::warn!(
                    %key, %error,
                    "recorded value is of another type or version; it is computed anew"
                );
                Ok(None)
            }
        }
    }

    /// Records a value, if the lock is still ours. A failure is logged: the value is there, and
    /// whoever finds none computes another.
    pub(super) async fn write(&self, manager: &Inner, guard: &LockGuard, value: &T) {
        let key = guard.key();
        let text = match (self.encode)(value) {
            Ok(text) => text,
            Err(error) => {
                log::warn!(%key, %error, "value not recorded: it cannot be written as JSON");
                return;
            }
        };
        let (size, max_size) = (text.len(), self.max_size);
        if size > max_size {
            log::warn!(%key, size, max_size, "value not recorded: it is too large");
            return;
        }
        let (owner, expire) = guard.owner();
        let give_up = manager.attempt_end(Moment::now(), expire);
        let lasts = self.ttl + self.stale;
        match manager.store.record(key, owner, &text, lasts, give_up).await {
            Ok(true) => log::debug!(%key, fence = %guard.token(), size, "value recorded"),
            Ok(false) => log::warn!(%key, "value not recorded: the lock is not ours any more"),
            Err(error) => log::warn!(%key, %error, "value not recorded"),
        }
    }
}

impl<T, K, P> Call<'_, T, K, P>
where
    T: Clone + Send + Sync + 'static,
    K: Copy,
{
    pub(super) async fn find(
        &self,
        record: &Record<T>,
        seat: &Seat<'_>,
    ) -> Result<Option<Found<T>>, LockError> {
        let found = record.find(self.manager, &self.id.key, self.expire).await;
        found.map_err(|error| {
            seat.trouble(&error);
            self.since_the_start(error)
        })
    }

    /// Computes a stale value anew, if nobody else does. The others have had the stale one.
    pub(super) async fn refresh<E>(
        &self,
        record: &Record<T>,
        stale: T,
        compute: impl AsyncFnOnce(Option<FencingToken>) -> Result<T, E>,
    ) -> T {
        let (manager, key) = (self.manager, &self.id.key);
        // A caller of this process that is at it is known without asking the server.
        let options = self.options.lock.timeout(Duration::ZERO);
        let Ok(guard) = acquire::acquire(manager, key.clone(), &options).await else {
            return stale;
        };
        let fresh = match record.find(manager, key, self.expire).await {
            Ok(Some(Found { value, is_stale: false })) => Some(value),
            Err(_) => None,
            Ok(_) => {
                let computed = {
                    let computing = pin!(compute(Some(guard.token())));
                    guard.hold(computing).await
                };
                match computed {
                    Ok(Ok(value)) => {
                        record.write(manager, &guard, &value).await;
                        Some(value)
                    }
                    Ok(Err(_)) => {
                        log::warn!(%key, "recorded value not refreshed: the computation failed");
                        None
                    }
                    // The loss is logged already.
                    Err(_) => None,
                }
            }
        };
        guard.finish().await;
        fresh.unwrap_or(stale)
    }
}
