//! The caller that computes a value which is recorded in the store.

use std::{pin::pin, time::Duration};

use super::FlightCall;
use crate::{
    acquire,
    clock::Instant,
    error::LockError,
    fence::FencingToken,
    flights::{Leader, Position},
    guard::LockGuard,
    log,
    single_flight::{
        error::SingleFlightError,
        options::Failures,
        record::{Destination, Found, Lookup, ValueRecord},
    },
    store::values::ValueName,
};

impl<T, K, P> FlightCall<'_, T, K, P>
where
    T: Clone + Send + Sync + 'static,
    K: Copy,
{
    pub(super) async fn find(
        &self,
        record: &ValueRecord<T>,
        leader: &Leader<'_>,
    ) -> Result<Lookup<T>, LockError> {
        let found = record.find(self.manager, &self.record_name(), self.expire).await;
        found.map_err(|error| {
            leader.trouble(&error);
            self.since_the_start(error)
        })
    }

    fn record_name(&self) -> ValueName {
        ValueName { key: self.id.key.clone(), version: self.plan.version }
    }

    /// Computes under the lock, unless the value is recorded by now, and records it.
    pub(super) async fn record_under<E>(
        &self,
        record: &ValueRecord<T>,
        guard: &LockGuard,
        leader: Leader<'_>,
        compute: impl AsyncFnOnce(Option<FencingToken>) -> Result<T, E>,
    ) -> Result<T, SingleFlightError<E>>
    where
        P: Failures<E>,
    {
        // The holder before may have recorded it.
        let mut unreadable = None;
        match self.find(record, &leader).await {
            Ok(Lookup::Found(Found { value, is_stale: false })) => {
                return Ok(leader.land(value, None));
            }
            Ok(Lookup::Unreadable(other)) => unreadable = Some(other),
            Ok(_) => {}
            // To compute once more than needed does no harm.
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(error.into()),
        }
        let computed = {
            let computing = pin!(compute(Some(guard.token())));
            guard.hold(computing).await?
        };
        let value = match computed {
            Ok(value) => value,
            Err(error) => return self.settle(leader, Err(error)),
        };
        match record.place(guard.key(), &value, unreadable) {
            Destination::Store(text) => {
                let value = leader.land(value, None);
                record.write(self.manager, guard, &self.record_name(), &text).await;
                Ok(value)
            }
            Destination::Process(time) => Ok(leader.land(value, Some(time))),
            Destination::Nowhere => Ok(leader.land(value, None)),
        }
    }

    /// Keeps a value without waiting callers in the memory of its process.
    async fn keep(&self, value: &T, time: Duration) {
        let caller = self.manager.flights.join(self.id.clone());
        if let Position::Lead(leader) = caller.turn(&self.manager.driver, Instant::now()).await {
            leader.land(value.clone(), Some(time));
        }
    }

    /// Computes a stale value anew, if no other caller does. The others have the stale one.
    pub(super) async fn refresh<E>(
        &self,
        record: &ValueRecord<T>,
        stale: T,
        compute: impl AsyncFnOnce(Option<FencingToken>) -> Result<T, E>,
    ) -> T {
        let (manager, key) = (self.manager, &self.id.key);
        // A caller of this process that is at it is known without asking the server.
        let options = self.options.lock.timeout(Duration::ZERO);
        let Ok(guard) = acquire::acquire(manager, key.clone(), &options).await else {
            return stale;
        };
        let name = self.record_name();
        let fresh = match record.find(manager, &name, self.expire).await {
            Ok(Lookup::Found(Found { value, is_stale: false })) => Some(value),
            Err(_) => None,
            Ok(look) => {
                let unreadable = match look {
                    Lookup::Unreadable(other) => Some(other),
                    Lookup::Found(_) | Lookup::Missing => None,
                };
                let computed = {
                    let computing = pin!(compute(Some(guard.token())));
                    guard.hold(computing).await
                };
                match computed {
                    Ok(Ok(value)) => {
                        match record.place(key, &value, unreadable) {
                            Destination::Store(text) => {
                                record.write(manager, &guard, &name, &text).await
                            }
                            Destination::Process(time) => self.keep(&value, time).await,
                            Destination::Nowhere => {}
                        }
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
