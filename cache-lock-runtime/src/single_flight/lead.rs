//! The caller that computes.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
};

#[cfg(feature = "serde")]
use super::record::{Found, Lookup};
use super::{
    error::SingleFlightError,
    options::{Failures, Plan, SingleFlight},
    within,
};
use crate::{
    acquire,
    clock::Instant,
    error::LockError,
    fence::FencingToken,
    flights::{FlightId, FlightOutcome, Leader},
    guard::LockGuard,
    manager_core::Core,
    options::OnLost,
};

#[cfg(feature = "serde")]
mod recorded;

/// One call.
pub(super) struct FlightCall<'a, T, K, P> {
    pub(super) manager: &'a Arc<Core>,
    pub(super) id: &'a FlightId,
    pub(super) options: &'a SingleFlight<K, P>,
    pub(super) plan: Plan<T>,
    pub(super) started: Instant,
    pub(super) deadline: Instant,
    pub(super) on_lost: OnLost,
    /// How long the lease of the lock lasts.
    #[cfg(feature = "serde")]
    pub(super) expire: std::time::Duration,
}

impl<T, K, P> FlightCall<'_, T, K, P>
where
    T: Clone + Send + Sync + 'static,
    K: Copy,
{
    /// What another caller's outcome is to this one; `None` if it is an error that is not shared.
    pub(super) fn accept<E>(
        &self,
        outcome: &FlightOutcome,
    ) -> Option<Result<T, SingleFlightError<E>>>
    where
        P: Failures<E>,
    {
        match outcome {
            FlightOutcome::Value(value) => value.downcast_ref::<T>().cloned().map(Ok),
            FlightOutcome::Failure(error) => {
                P::shared(error).map(|error| Err(SingleFlightError::Compute(error)))
            }
        }
    }

    /// Computes, unless the value is recorded.
    pub(super) async fn lead<E>(
        &self,
        leader: Leader<'_>,
        compute: impl AsyncFnOnce(Option<FencingToken>) -> Result<T, E>,
    ) -> Result<T, SingleFlightError<E>>
    where
        P: Failures<E>,
    {
        if self.plan.local {
            let computed = self.compute_locally(pin!(compute(None))).await?;
            return self.settle(leader, computed);
        }
        #[cfg(feature = "serde")]
        if let Some(record) = &self.plan.record {
            match self.find(record, &leader).await {
                Ok(Lookup::Found(Found { value, is_stale: false })) => {
                    return Ok(leader.land(value, None));
                }
                Ok(Lookup::Found(Found { value, is_stale: true })) => {
                    let stale = leader.land(value, None);
                    return Ok(self.refresh(record, stale, compute).await);
                }
                Ok(Lookup::Missing | Lookup::Unreadable(_)) => {}
                // The wait for the lock asks again until the timeout, and the leader looks once more.
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let guard = self.acquire(&leader).await?;
        let outcome = self.lead_under(&guard, leader, compute).await;
        guard.finish().await;
        outcome
    }

    /// Polls a computation that has no lease. A shutdown ends it as it ends a body whose lease it
    /// takes: at once, unless `on_lost` lets it finish.
    async fn compute_locally<F: Future>(
        &self,
        mut computing: Pin<&mut F>,
    ) -> Result<F::Output, LockError> {
        let flights = &self.manager.flights;
        let cancel = self.on_lost == OnLost::Cancel;
        let mut closing = pin!(flights.closing());
        poll_fn(|context| {
            if cancel {
                // Registered before the state is looked at, so that no shutdown falls in between.
                let _: Poll<()> = closing.as_mut().poll(context);
                if flights.is_closed() {
                    return Poll::Ready(Err(LockError::ShutDown));
                }
            }
            within::poll_in(self.manager.id, self.id, computing.as_mut(), context).map(Ok)
        })
        .await
    }

    async fn acquire(&self, leader: &Leader<'_>) -> Result<LockGuard, LockError> {
        let options = self.options.lock.timeout(self.deadline - Instant::now());
        match acquire::acquire(self.manager, self.id.key.clone(), &options).await {
            Ok(guard) => {
                leader.begin();
                Ok(guard)
            }
            Err(error) => {
                leader.trouble(&error);
                Err(self.since_the_start(error))
            }
        }
    }

    async fn lead_under<E>(
        &self,
        guard: &LockGuard,
        leader: Leader<'_>,
        compute: impl AsyncFnOnce(Option<FencingToken>) -> Result<T, E>,
    ) -> Result<T, SingleFlightError<E>>
    where
        P: Failures<E>,
    {
        #[cfg(feature = "serde")]
        if let Some(record) = &self.plan.record {
            return self.record_under(record, guard, leader, compute).await;
        }
        let computed = {
            let computing = pin!(compute(Some(guard.token())));
            guard.hold(computing).await?
        };
        self.settle(leader, computed)
    }

    /// Tells the others what came of the computation.
    pub(super) fn settle<E>(
        &self,
        leader: Leader<'_>,
        computed: Result<T, E>,
    ) -> Result<T, SingleFlightError<E>>
    where
        P: Failures<E>,
    {
        match computed {
            Ok(value) => Ok(leader.land(value, self.plan.keep)),
            Err(error) => {
                if let Some(shared) = P::share(&error) {
                    leader.crash(shared);
                }
                Err(SingleFlightError::Compute(error))
            }
        }
    }

    /// The time that a caller has waited is that of the whole call.
    pub(super) fn since_the_start(&self, error: LockError) -> LockError {
        let waited = self.started.elapsed();
        match error {
            LockError::Contended { key, no_expiry, .. } => {
                LockError::Contended { key, waited, no_expiry }
            }
            LockError::Backend { key, source, .. } => LockError::Backend { key, waited, source },
            other => other,
        }
    }
}
