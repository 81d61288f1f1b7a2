//! What can go wrong with the server.

use std::{error::Error, fmt, sync::Arc};

/// A failure of the server that keeps the locks, or of the way to it.
///
/// It never holds a password.
#[derive(Clone, Debug)]
pub struct BackendError {
    kind: BackendErrorKind,
    message: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl BackendError {
    pub(crate) fn new(kind: BackendErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The time of a request was over before the connection had room for it.
    pub(crate) fn overloaded() -> Self {
        let message = "too many requests wait for the server, and this one was not sent in time";
        Self::new(BackendErrorKind::Overloaded, message)
    }

    #[cfg(any(test, feature = "redis"))]
    pub(crate) fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// What kind of failure it is.
    #[must_use]
    pub const fn kind(&self) -> BackendErrorKind {
        self.kind
    }

    /// The failure may pass without a change of the configuration.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        use BackendErrorKind::{
            Loading, OutOfMemory, Overloaded, ReadOnly, Stalled, Timeout, Unavailable, Unreachable,
        };
        matches!(
            self.kind,
            Unreachable
                | Timeout
                | Overloaded
                | Stalled
                | Loading
                | ReadOnly
                | OutOfMemory
                | Unavailable
        )
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for BackendError {
    /// The first cause that says more: those are left out whose words are in the message already, or
    /// that only repeat their own cause.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let mut next = self.source.as_deref().map(|source| source as &(dyn Error + 'static));
        while let Some(cause) = next {
            let words = cause.to_string();
            next = cause.source();
            let repeats = next.is_some_and(|next| words.contains(&next.to_string()));
            if !repeats && !self.message.contains(&words) {
                return Some(cause);
            }
        }
        None
    }
}

/// The kinds of [`BackendError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackendErrorKind {
    /// No connection could be made, or it broke.
    Unreachable,
    /// The server did not answer in time.
    Timeout,
    /// The program asks for more than the server carries out. The deadline passed before the
    /// connection had room for the request, so nothing was sent.
    Overloaded,
    /// The server has granted the lock in time, and the caller was not polled: its runtime is
    /// blocked or overloaded, or its future was not polled.
    Stalled,
    /// The server is loading its data.
    Loading,
    /// The server is a replica, or has become one in a failover.
    ReadOnly,
    /// The server is there, and cannot take writes for now: it misses its replicas, or is busy with
    /// a script that runs for too long, or could not save its data, or takes no more connections, or
    /// its cluster is down. Also if an answer leaves open whether the request was carried out, as that
    /// of a proxy whose server is slow: then the request is taken back.
    Unavailable,
    /// The server has reached its `maxmemory` and may not evict.
    OutOfMemory,
    /// The user or password is wrong, or the user may not run a command or touch the key, or the server
    /// does not let scripts run a command that locks need.
    Denied,
    /// The record under the lock's key is not a lock.
    ForeignRecord,
    /// The URL or the TLS settings cannot be used.
    Configuration,
    /// The process was forked after the manager had started, and the manager's thread is the parent's.
    /// Make a manager in the child, or build one with `connect_lazy` before the fork and leave it untouched.
    Forked,
    /// The server said something else.
    Server,
}
