//! Single flight: of all callers that ask for a value, one computes it.
//!
//! [`LockManager::single_flight`] is the call, [`SingleFlight`] says how far the sharing goes, and
//! this module has the types by which it says so: where a value is kept ([`Locked`], [`Local`],
//! `Recorded`) and what becomes of errors ([`Retry`], [`Share`]).
//!
//! | what a caller finds | round trips to the server |
//! |---|---|
//! | a caller of its process computes, or a value is kept | 0 |
//! | a recorded value | 1 for all callers of its process at the same time |
//! | a recorded value that is stale, while another caller refreshes it | 1, and 1 more from another process |
//! | nothing, without `record` | 2: the lock and its release |
//! | nothing, with `record` | 5: a look, the lock, a look under it, the record, the release |

use std::{any::TypeId, sync::Arc, time::Duration};

use self::lead::FlightCall;
use crate::{
    clock::Instant,
    error::LockError,
    fence::FencingToken,
    flights::{FlightId, Position},
    key::LockKey,
    log,
    manager::LockManager,
    manager_core::Core,
    scope,
};

mod error;
#[cfg(feature = "serde")]
mod fingerprint;
mod lead;
mod options;
#[cfg(feature = "serde")]
mod record;
mod within;

#[cfg(feature = "serde")]
pub use self::options::Recorded;
pub use self::{
    error::SingleFlightError,
    options::{Failures, Fenced, Kind, Local, Locked, Retry, Share, SingleFlight},
};

impl LockManager {
    /// Computes a value once for many callers: one computes, and the others get its result.
    ///
    /// [`SingleFlight`] sets the scope and the time: this process, or the fleet through a record in the store,
    /// which is a cache without stampedes.
    ///
    /// ```
    /// # #[cfg(feature = "serde")]
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use std::{convert::Infallible, time::Duration};
    /// # use cache_lock::{LockKey, LockManager, SingleFlight};
    /// # async fn ask_the_bank(currency: &str) -> Result<f64, Infallible> { Ok(1.08) }
    /// # let locks = LockManager::in_memory();
    /// let rates = SingleFlight::new().record(Duration::from_secs(60)).stale(Duration::from_secs(30));
    ///
    /// let key = LockKey::new("rate").part("USD");
    /// let rate = locks.single_flight(key, &rates, || async { ask_the_bank("USD").await }).await?;
    /// # assert_eq!(rate, 1.08);
    /// # Ok::<(), cache_lock::SingleFlightError<Infallible>>(()) }).unwrap();
    /// ```
    ///
    /// The computation runs in the future of the caller, and no task is spawned: dropped, it stops
    /// where it stands, and left unpolled, it keeps others waiting until their
    /// timeouts. If it fails, panics, is dropped, or dies with its process, the next waiter runs
    /// its own (after a crash, when the lease ends). An error is its caller's alone, unless
    /// [`share_errors`](SingleFlight::share_errors) is said.
    ///
    /// A caller that finds a value in its process sends no command. A recorded value takes one round
    /// trip, a `GET`, or a script where it can be stale, for all callers that ask at the same time in
    /// a process. A caller that computes takes two for the lock, and three more if the value is recorded: a
    /// read before the lock, one under it, and the record.
    ///
    /// Values of different types under one key do not meet inside a process. In the store they do, so
    /// a key belongs to one type, and [`version`](SingleFlight::version) tells the types of two
    /// versions of a program apart. A record that cannot be read as the type that is asked for is left
    /// alone until its time is over. Until then, and for the `ttl` at most, the process keeps a value
    /// that it computes itself.
    ///
    /// # Errors
    /// [`SingleFlightError::Compute`] with the error of the computation. [`SingleFlightError::Lock`]
    /// with those of [`acquire`](Self::acquire): [`LockError::Contended`] when others computed for
    /// all of the timeout, [`LockError::Nested`] inside of a body or a computation that this call
    /// would wait for; and with [`LockError::Lost`] if the lock is lost while the computation runs
    /// (unless [`OnLost::Finish`](crate::OnLost::Finish)). A value that cannot be recorded is
    /// returned all the same, and a warning logged. A value that JSON does not keep, such as NaN or
    /// `Some(None)`, stays in its process for the `ttl`.
    ///
    /// # Cancel safety
    /// Dropped at any point, its computation is dropped, then the lock is released in the background,
    /// and the next waiter computes.
    pub async fn single_flight<T, E, K, P>(
        &self,
        key: impl Into<LockKey>,
        options: &SingleFlight<K, P>,
        compute: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<T, SingleFlightError<E>>
    where
        T: Clone + Send + Sync + 'static,
        K: Kind<T>,
        P: Failures<E>,
    {
        fly::<T, E, K, P>(self.core(), key.into(), options, async |_| compute().await).await
    }

    /// The same for a computation that writes: it is given the [`FencingToken`] of the lock that it
    /// runs under.
    ///
    /// ```
    /// # #[cfg(feature = "serde")]
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use std::{convert::Infallible, time::Duration};
    /// # use cache_lock::{FencingToken, LockManager, SingleFlight};
    /// # async fn migrate(token: FencingToken) -> Result<u32, Infallible> { Ok(7) }
    /// # let locks = LockManager::in_memory();
    /// let once = SingleFlight::new().record(Duration::from_secs(600));
    /// let version =
    ///     locks.single_flight_fenced("schema", &once, |token| async move { migrate(token).await });
    /// assert_eq!(version.await?, 7);
    /// # Ok::<(), cache_lock::SingleFlightError<Infallible>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// Those of [`single_flight`](Self::single_flight).
    ///
    /// # Cancel safety
    /// That of [`single_flight`](Self::single_flight).
    pub async fn single_flight_fenced<T, E, K, P>(
        &self,
        key: impl Into<LockKey>,
        options: &SingleFlight<K, P>,
        compute: impl AsyncFnOnce(FencingToken) -> Result<T, E>,
    ) -> Result<T, SingleFlightError<E>>
    where
        T: Clone + Send + Sync + 'static,
        K: Kind<T> + Fenced,
        P: Failures<E>,
    {
        let compute = async |token: Option<FencingToken>| {
            let token = token.expect("a kind that is `Fenced` computes under its lock");
            compute(token).await
        };
        fly::<T, E, K, P>(self.core(), key.into(), options, compute).await
    }
}

async fn fly<T, E, K, P>(
    manager: &Arc<Core>,
    key: LockKey,
    options: &SingleFlight<K, P>,
    compute: impl AsyncFnOnce(Option<FencingToken>) -> Result<T, E>,
) -> Result<T, SingleFlightError<E>>
where
    T: Clone + Send + Sync + 'static,
    K: Kind<T>,
    P: Failures<E>,
{
    let started = Instant::now();
    let plan = options.kind.plan()?;
    let settings = options.lock.resolve(&manager.defaults)?;
    if let Err(problem) = key.validate() {
        return Err(LockError::InvalidKey { key, problem }.into());
    }
    let id = FlightId { key, value: TypeId::of::<T>(), local: plan.local, version: plan.version };
    let nested = if plan.local {
        within::is_nested(manager.id, &id)
    } else {
        scope::is_nested(scope::enclosing().as_ref(), manager.id, &id.key)
    };
    if nested {
        return Err(LockError::Nested { key: id.key }.into());
    }
    // It times the waiting.
    manager.start().map_err(|error| LockError::backend(&id.key, Duration::ZERO, error))?;
    let deadline = started + settings.timeout;
    let call = FlightCall {
        manager,
        id: &id,
        options,
        plan,
        started,
        deadline,
        on_lost: settings.on_lost,
        #[cfg(feature = "serde")]
        expire: settings.expire,
    };
    loop {
        if manager.is_closed() {
            return Err(LockError::ShutDown.into());
        }
        let caller = manager.flights.join(id.clone());
        let leader = match caller.turn(&manager.driver, deadline).await {
            Position::Lead(leader) => leader,
            Position::Landed(outcome) => match call.accept(&outcome) {
                Some(outcome) => return outcome,
                // An error that is not for us.
                None => continue,
            },
            Position::ShutDown => return Err(LockError::ShutDown.into()),
            Position::Late(Some(error)) => return Err(error.into()),
            Position::Late(None) => {
                let waited = started.elapsed();
                log::debug!(key = %id.key, ?waited, "single flight contended");
                let key = id.key.clone();
                return Err(LockError::Contended { key, waited, no_expiry: false }.into());
            }
        };
        return call.lead(leader, compute).await;
    }
}
