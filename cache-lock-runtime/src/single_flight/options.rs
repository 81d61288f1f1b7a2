//! How a flight is shared, and what is kept of it.

use std::{marker::PhantomData, sync::Arc, time::Duration};

#[cfg(feature = "serde")]
use super::record::ValueRecord;
use crate::flights::SharedValue;
use crate::{error::LockError, options::LockOptions};

/// The longest time for which a value is recorded.
#[cfg(feature = "serde")]
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The largest value that is recorded, unless it is said: 1 MiB of JSON.
#[cfg(feature = "serde")]
const MAX_SIZE: usize = 1024 * 1024;

/// How callers share one computation, for
/// [`LockManager::single_flight`](crate::LockManager::single_flight).
///
/// | made by | computes at a time | gets the value | for how long |
/// |---|---|---|---|
/// | `SingleFlight::new()` | one caller of the fleet | the callers in its process | those that asked before |
/// | `.local()` | one caller of each process, without a lock | the same | the same |
/// | `.keep(time)` on either | the same | the same | and those that ask within `time` |
/// | `.record(ttl)` | one caller of the fleet | all callers of the fleet | those that ask within `ttl` |
///
/// Callers of one key should have the same options: those of the one that computes count.
///
/// "Process" is short for manager, of which a process has one. The first three take any value that
/// is `Clone + Send + Sync + 'static`, such as a pool of connections: each process computes its own,
/// one process after the other unless `local`. A value that is recorded is written to the store as
/// JSON, so it also is `Serialize + DeserializeOwned` (feature `serde`).
///
/// ```
/// use std::time::Duration;
/// use cache_lock::{LockOptions, SingleFlight};
///
/// const POOL: SingleFlight<cache_lock::single_flight::Local> =
///     SingleFlight::new().local().keep(Duration::MAX);
/// let patient = SingleFlight::new()
///     .lock(LockOptions::new().timeout(Duration::from_secs(30)))
///     .share_errors();
/// ```
#[derive(Debug)]
#[must_use]
pub struct SingleFlight<K = Locked, P = Retry> {
    pub(super) lock: LockOptions,
    pub(super) kind: K,
    failures: PhantomData<P>,
}

impl<K: Copy, P> Clone for SingleFlight<K, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Copy, P> Copy for SingleFlight<K, P> {}

/// A flight under the lock of its key, so that one process computes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locked {
    keep: Option<Duration>,
}

/// A flight inside of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    keep: Option<Duration>,
}

/// A flight under the lock of its key, whose value is recorded in the store for all processes.
#[cfg(feature = "serde")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    ttl: Duration,
    stale: Duration,
    max_size: usize,
    version: u32,
}

/// An error is its own caller's; the next waiter computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry;

/// An error is that of all callers that have asked in this process before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share;

impl SingleFlight {
    /// Callers of one process share, and processes take turns; times and the rest of the lock are
    /// the manager's.
    pub const fn new() -> Self {
        Self { lock: LockOptions::new(), kind: Locked { keep: None }, failures: PhantomData }
    }
}

impl Default for SingleFlight {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Copy, P> SingleFlight<K, P> {
    /// How the lock is waited for and held. Its `timeout` bounds all waiting, for a caller of this
    /// process that computes as well as for another process; a computation should fit into it. A
    /// computation whose lock is lost is dropped, unless `on_lost` lets it finish.
    pub const fn lock(mut self, lock: LockOptions) -> Self {
        self.lock = lock;
        self
    }

    /// Gives an error of the computation to all callers of this process that asked before, in place
    /// of letting the next of them try. A later caller starts anew. The error must be `Clone`.
    ///
    /// A computation that panics or is dropped, and a lock that is not had or lost, have no error to
    /// share: there the next one tries in any case. Nor has one in another process.
    pub const fn share_errors(self) -> SingleFlight<K, Share> {
        SingleFlight { lock: self.lock, kind: self.kind, failures: PhantomData }
    }
}

impl<P> SingleFlight<Locked, P> {
    /// Takes no lock and asks no server: each process computes for itself.
    ///
    /// A shutdown of the manager drops a computation that runs, and its caller gets
    /// [`LockError::ShutDown`], unless `on_lost` lets it finish: then its value is returned.
    pub const fn local(self) -> SingleFlight<Local, P> {
        let kind = Local { keep: self.kind.keep };
        SingleFlight { lock: self.lock, kind, failures: PhantomData }
    }

    /// Keeps the value in the memory of its process, for callers within this time. `Duration::MAX`
    /// is for as long as the manager lives.
    ///
    /// A value whose time is over is dropped when the next flight begins, of whatever key. One that
    /// holds the manager itself keeps it alive.
    pub const fn keep(mut self, time: Duration) -> Self {
        self.kind.keep = Some(time);
        self
    }

    /// Records the value in the store for this time, for all processes.
    #[cfg(feature = "serde")]
    pub const fn record(self, ttl: Duration) -> SingleFlight<Recorded, P> {
        let kind = Recorded { ttl, stale: Duration::ZERO, max_size: MAX_SIZE, version: 0 };
        SingleFlight { lock: self.lock, kind, failures: PhantomData }
    }
}

impl<P> SingleFlight<Local, P> {
    /// As [`SingleFlight::keep`].
    pub const fn keep(mut self, time: Duration) -> Self {
        self.kind.keep = Some(time);
        self
    }
}

#[cfg(feature = "serde")]
impl<P> SingleFlight<Recorded, P> {
    /// For this time after the `ttl` the value is stale: it is still returned, at once, to all but
    /// one caller of the fleet, which computes it anew and gets the new one. If that fails, the stale
    /// value is returned to that caller, too.
    ///
    /// The value is recorded for `ttl + stale`, and taken for stale in the last `stale` of that.
    pub const fn stale(mut self, stale: Duration) -> Self {
        self.kind.stale = stale;
        self
    }

    /// The largest value that is recorded, in bytes of JSON; 1 MiB, unless it is said. A larger one
    /// is returned to the callers of its process, and a warning says that it is not recorded: then
    /// each process computes.
    pub const fn max_size(mut self, bytes: usize) -> Self {
        self.kind.max_size = bytes;
        self
    }

    /// The version of the value's type. Default: 0.
    ///
    /// Each version has its own record. Raise it whenever older programs cannot read the new value, or
    /// the new program cannot read the old one: in a rolling deploy the old processes then share one
    /// value, and the new processes share another. Without that, the record of whichever program
    /// computed first is left alone until its time is over, and each process of the other program
    /// computes a value for itself, one process after the other. The lock of the key is the same for
    /// all versions, so one process of the fleet computes at a time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use cache_lock::{SingleFlight, single_flight::Recorded};
    ///
    /// // Amounts were `f64` in version 1.
    /// const RATES: SingleFlight<Recorded> =
    ///     SingleFlight::new().record(Duration::from_secs(60)).version(2);
    /// ```
    pub const fn version(mut self, version: u32) -> Self {
        self.kind.version = version;
        self
    }
}

/// What a flight of values `T` does, in one form for all kinds.
#[derive(Debug)]
pub struct Plan<T> {
    pub(super) local: bool,
    pub(super) version: u32,
    pub(super) keep: Option<Duration>,
    #[cfg(feature = "serde")]
    pub(super) record: Option<ValueRecord<T>>,
    value: PhantomData<fn(T)>,
}

impl<T> Plan<T> {
    const fn new(local: bool, keep: Option<Duration>) -> Self {
        Self {
            local,
            version: 0,
            keep,
            #[cfg(feature = "serde")]
            record: None,
            value: PhantomData,
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Locked {}
    impl Sealed for super::Local {}
    #[cfg(feature = "serde")]
    impl Sealed for super::Recorded {}
    impl Sealed for super::Retry {}
    impl Sealed for super::Share {}
}

/// The kinds of flights that values `T` can have: [`Locked`] and [`Local`] for all, `Recorded` if
/// they are `Serialize + DeserializeOwned`.
#[diagnostic::on_unimplemented(
    message = "a single flight cannot record values of type `{T}`",
    note = "a value is recorded as JSON: derive `serde::Serialize` and `serde::Deserialize` for it, or leave out `record`"
)]
pub trait Kind<T>: sealed::Sealed + Copy {
    #[doc(hidden)]
    fn plan(&self) -> Result<Plan<T>, LockError>;
}

impl<T> Kind<T> for Locked {
    fn plan(&self) -> Result<Plan<T>, LockError> {
        Ok(Plan::new(false, self.keep))
    }
}

impl<T> Kind<T> for Local {
    fn plan(&self) -> Result<Plan<T>, LockError> {
        Ok(Plan::new(true, self.keep))
    }
}

#[cfg(feature = "serde")]
impl<T: serde::Serialize + serde::de::DeserializeOwned> Kind<T> for Recorded {
    fn plan(&self) -> Result<Plan<T>, LockError> {
        let Self { ttl, stale, max_size, version } = *self;
        for (option, value, least) in
            [("record", ttl, Duration::from_millis(1)), ("stale", stale, Duration::ZERO)]
        {
            if value < least || value > LONGEST {
                let limit = "it must be from 1ms to 365 days";
                return Err(LockError::InvalidOption { option, value, limit });
            }
        }
        let record = Some(ValueRecord::json(ttl, stale, max_size));
        Ok(Plan { record, version, ..Plan::new(false, None) })
    }
}

/// The kinds that hold the lock of their key while they compute.
#[diagnostic::on_unimplemented(
    message = "a local single flight takes no lock, so it has no fencing token",
    note = "leave out `local`, or use `single_flight`"
)]
pub trait Fenced: sealed::Sealed {}

impl Fenced for Locked {}
#[cfg(feature = "serde")]
impl Fenced for Recorded {}

/// What becomes of errors `E`: [`Retry`] for all, [`Share`] if they are
/// `Clone + Send + Sync + 'static`.
#[diagnostic::on_unimplemented(
    message = "a single flight cannot share errors of type `{E}`",
    note = "an error is given to several callers: derive `Clone` for it, put it into an `Arc`, or leave out `share_errors`"
)]
pub trait Failures<E>: sealed::Sealed {
    #[doc(hidden)]
    fn share(error: &E) -> Option<SharedValue>;
    #[doc(hidden)]
    fn shared(error: &SharedValue) -> Option<E>;
}

impl<E> Failures<E> for Retry {
    fn share(_: &E) -> Option<SharedValue> {
        None
    }

    fn shared(_: &SharedValue) -> Option<E> {
        None
    }
}

impl<E: Clone + Send + Sync + 'static> Failures<E> for Share {
    fn share(error: &E) -> Option<SharedValue> {
        Some(Arc::new(error.clone()))
    }

    fn shared(error: &SharedValue) -> Option<E> {
        error.downcast_ref::<E>().cloned()
    }
}
