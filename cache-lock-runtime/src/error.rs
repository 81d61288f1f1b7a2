//! What can go wrong.

mod backend;
mod shown;

use std::{fmt, sync::Arc, time::Duration};

pub use self::backend::{BackendError, BackendErrorKind};
#[cfg(all(test, feature = "redis"))]
pub(crate) use self::shown::tests::says_nothing_twice;
use crate::key::{KeyProblem, LockKey};

/// Why a lock was not acquired, or did not last.
///
/// Three failures call for three reactions, and are told apart: *contention* (another holder has
/// the lock: try later, or answer "busy"), *backend* (the server could not be asked: nothing is
/// known), and *loss* (the lock was held, and ended before the body did).
///
/// The sentence that an error shows says all that is known, the cause included. So
/// [`source`](std::error::Error::source) returns only what the sentence does not say, and a report of
/// the whole chain repeats nothing.
///
/// An error is small (at most 64 bytes) and cheap to clone, so that it can be stored, sent and
/// turned into an error type of your own:
///
/// ```
/// use cache_lock::LockError;
///
/// #[derive(Debug)]
/// enum ReserveError {
///     Busy,
///     Unavailable(LockError),
/// }
///
/// impl From<LockError> for ReserveError {
///     fn from(error: LockError) -> Self {
///         if error.is_contended() { Self::Busy } else { Self::Unavailable(error) }
///     }
/// }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum LockError {
    /// Another holder had the lock until the deadline. The body did not start.
    ///
    /// The error does not know the holder. In Redis the record does: `GET <key>` shows its host and
    /// process, if the holder is a cache-lock.
    #[non_exhaustive]
    Contended {
        /// The lock.
        key: LockKey,
        /// How long it was waited for.
        waited: Duration,
        /// The holder's record never expires, so no lock library of the usual kind has set it.
        no_expiry: bool,
    },

    /// The server could not be asked, or did not answer in time. Where an acquisition fails with
    /// it, the body did not start; extending and releasing by hand fail with it too.
    #[non_exhaustive]
    Backend {
        /// The lock.
        key: LockKey,
        /// How long it was tried.
        waited: Duration,
        /// What the server or the connection said last.
        source: Arc<BackendError>,
    },

    /// The lease ended before the body did.
    ///
    /// The body may have taken effect in part or, through a request that it had already sent, in
    /// full. Repeat it only if it is idempotent, or if its writes are fenced.
    #[non_exhaustive]
    Lost {
        /// The lock.
        key: LockKey,
        /// How it was lost.
        reason: LostReason,
    },

    /// The enclosing body, in this same task, holds this lock already, and would have to wait for
    /// itself.
    #[non_exhaustive]
    Nested {
        /// The lock.
        key: LockKey,
    },

    /// An option is out of range.
    #[non_exhaustive]
    InvalidOption {
        /// The option's name.
        option: &'static str,
        /// Its value.
        value: Duration,
        /// What it must be.
        limit: &'static str,
    },

    /// The key cannot be used.
    #[non_exhaustive]
    InvalidKey {
        /// The key.
        key: LockKey,
        /// What is wrong with it.
        problem: KeyProblem,
    },

    /// There is no manager to ask: none is installed, and the code does not run in a scope of one.
    /// A spawned task is not in the scope of the task that spawned it.
    NoManager,

    /// A manager is installed already, and stays.
    AlreadyInstalled,

    /// The manager was shut down.
    ShutDown,

    /// The server could not be reached when the manager was made.
    #[non_exhaustive]
    Connect {
        /// The server's address, without a password.
        server: Box<str>,
        /// What went wrong.
        source: Arc<BackendError>,
    },

    /// The server did not answer a [`ping`](crate::LockManager::ping).
    #[non_exhaustive]
    Ping {
        /// The server's address, without a password.
        server: Box<str>,
        /// What went wrong.
        source: Arc<BackendError>,
    },
}

impl LockError {
    pub(crate) fn backend(key: &LockKey, waited: Duration, source: BackendError) -> Self {
        Self::Backend { key: key.clone(), waited, source: source.into() }
    }

    #[cfg(any(test, feature = "redis"))]
    pub(crate) fn connect(server: &str, source: BackendError) -> Self {
        Self::Connect { server: server.into(), source: source.into() }
    }

    pub(crate) fn ping(server: &str, source: BackendError) -> Self {
        Self::Ping { server: server.into(), source: source.into() }
    }

    /// Another holder has the lock.
    #[must_use]
    pub const fn is_contended(&self) -> bool {
        matches!(self, Self::Contended { .. })
    }

    /// The lock was held and is lost; the body may have taken effect in part.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// The same call may succeed later: contention, and failures of the server that pass. A body
    /// has not started then.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Contended { .. } => true,
            Self::Backend { source, .. }
            | Self::Connect { source, .. }
            | Self::Ping { source, .. } => source.is_transient(),
            _ => false,
        }
    }

    /// The lock that the error is about, if it is about one.
    #[must_use]
    pub const fn key(&self) -> Option<&LockKey> {
        match self {
            Self::Contended { key, .. }
            | Self::Backend { key, .. }
            | Self::Lost { key, .. }
            | Self::Nested { key }
            | Self::InvalidKey { key, .. } => Some(key),
            _ => None,
        }
    }
}

/// How a lease ended before its holder released it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostReason {
    /// It ran out, by this process's clock: it was not renewed, or the server could not be reached
    /// to renew it. Another holder may have the lock now.
    Expired,
    /// The server says that the record is gone, or another holder's.
    Gone,
    /// It reached `max_hold`.
    MaxHold,
    /// The manager was shut down.
    ShutDown,
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "the lease ran out before it was renewed",
            Self::Gone => "the server no longer knows the lease",
            Self::MaxHold => "it was held for as long as `max_hold` allows",
            Self::ShutDown => "the lock manager was shut down",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_small_and_go_everywhere() {
        fn anywhere<T: Clone + Send + Sync + 'static>() {}
        anywhere::<LockError>();
        assert!(size_of::<LockError>() <= 64, "{}", size_of::<LockError>());
    }

    #[test]
    fn reactions_are_told_apart() {
        let key = LockKey::new("room").part(1);
        let waited = Duration::from_secs(2);
        let contended = LockError::Contended { key: key.clone(), waited, no_expiry: false };
        assert!(contended.is_contended() && contended.is_retryable() && !contended.is_lost());
        let backend = |kind| LockError::Backend {
            key: key.clone(),
            waited,
            source: Arc::new(BackendError::new(kind, "no answer")),
        };
        assert!(backend(BackendErrorKind::Timeout).is_retryable());
        assert!(!backend(BackendErrorKind::Denied).is_retryable());
        assert!(!backend(BackendErrorKind::Timeout).is_contended());
        let lost = LockError::Lost { key: key.clone(), reason: LostReason::Expired };
        assert!(lost.is_lost() && !lost.is_retryable());
        assert_eq!(lost.key(), Some(&key));
        assert_eq!(
            lost.to_string(),
            "lock `room:1` was lost: the lease ran out before it was renewed"
        );
    }
}
