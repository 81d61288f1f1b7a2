//! How a [`LockError`] shows itself: in one sentence, to a programmer, and as a chain of causes.

use std::{error::Error, fmt, time::Duration};

use super::LockError;

const NO_EXPIRY: &str = "; its record has no expiry, so it will not go away by itself: \
                         delete it if nothing holds it";

const NESTED: &str = "is already held by an enclosing body of this task, which would wait for itself; \
                      call the inner code without its lock";

/// Names `spawn`, as a scope around a server is the likely mistake: it reaches no request.
const NO_MANAGER: &str = "no lock manager here: call `LockManager::connect(url).await?.install()?` when \
                          the program starts, or name one with `with = ..`; `LockManager::scope` does not \
                          reach spawned tasks, such as the requests of a server";

const ALREADY_INSTALLED: &str = "a lock manager is already installed in this process, and stays; for another \
                                 one, as in a test, use `LockManager::scope` or `with = ..`";

const SHUT_DOWN: &str = "the lock manager was shut down, for good; call `LockManager::shutdown` when the \
                         program needs no more locks";

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contended { key, waited, no_expiry } => {
                let hint = if *no_expiry { NO_EXPIRY } else { "" };
                let waited = Rounded(*waited);
                write!(f, "lock `{key}` is held by another caller; gave up after {waited}{hint}")
            }
            Self::Backend { key, waited, source } => {
                write!(f, "lock `{key}`: {source} (tried for {})", Rounded(*waited))
            }
            Self::Lost { key, reason } => write!(f, "lock `{key}` was lost: {reason}"),
            Self::Nested { key } => write!(f, "lock `{key}` {NESTED}"),
            Self::InvalidOption { option, value, limit } => {
                write!(f, "`{option}` is {value:?}; {limit}")
            }
            Self::InvalidKey { key, problem } => write!(f, "lock key `{key}` {problem}"),
            Self::NoManager => f.write_str(NO_MANAGER),
            Self::AlreadyInstalled => f.write_str(ALREADY_INSTALLED),
            Self::ShutDown => f.write_str(SHUT_DOWN),
            Self::Connect { server, source } => write!(f, "cannot connect to {server}: {source}"),
            Self::Ping { server, source } => write!(f, "no answer to ping from {server}: {source}"),
        }
    }
}

impl fmt::Debug for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `unwrap` shows this text and no other, so a mistake says here, too, how it is mended.
        let says = |f: &mut fmt::Formatter<'_>, name| {
            f.debug_tuple(name).field(&format_args!("{self}")).finish()
        };
        match self {
            Self::Contended { key, waited, no_expiry } => f
                .debug_struct("Contended")
                .field("key", key)
                .field("waited", waited)
                .field("no_expiry", no_expiry)
                .finish(),
            Self::Backend { key, waited, source } => f
                .debug_struct("Backend")
                .field("key", key)
                .field("waited", waited)
                .field("source", source)
                .finish(),
            Self::Lost { key, reason } => {
                f.debug_struct("Lost").field("key", key).field("reason", reason).finish()
            }
            Self::Nested { .. } => says(f, "Nested"),
            Self::InvalidOption { .. } => says(f, "InvalidOption"),
            Self::InvalidKey { .. } => says(f, "InvalidKey"),
            Self::NoManager => says(f, "NoManager"),
            Self::AlreadyInstalled => says(f, "AlreadyInstalled"),
            Self::ShutDown => says(f, "ShutDown"),
            Self::Connect { server, source } => {
                f.debug_struct("Connect").field("server", server).field("source", source).finish()
            }
            Self::Ping { server, source } => {
                f.debug_struct("Ping").field("server", server).field("source", source).finish()
            }
        }
    }
}

/// The chain goes on where the sentence ends: the sentence has the words of the `BackendError` in it.
impl Error for LockError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Backend { source, .. }
            | Self::Connect { source, .. }
            | Self::Ping { source, .. } => source.source(),
            _ => None,
        }
    }
}

/// A time as people write it, without nanoseconds.
struct Rounded(Duration);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        fmt::Debug::fmt(&Duration::from_millis(milliseconds), f)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        error::{BackendError, BackendErrorKind, KeyProblem, LostReason},
        key::LockKey,
    };

    #[derive(Debug)]
    struct Cause(&'static str, Option<Box<Cause>>);

    impl fmt::Display for Cause {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Cause {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    fn backend() -> BackendError {
        let root = Cause("broken pipe", None);
        // As libraries do that wrap an error: the same words once more.
        let wrapped = Cause("I/O: broken pipe", Some(root.into()));
        let quoted = Cause("the server is gone", Some(wrapped.into()));
        let message = "no connection: the server is gone";
        BackendError::new(BackendErrorKind::Unreachable, message).with_source(quoted)
    }

    /// One of each.
    fn errors() -> Vec<LockError> {
        let key = LockKey::new("room").part(42);
        let waited = Duration::from_secs(2);
        vec![
            LockError::Contended { key: key.clone(), waited, no_expiry: true },
            LockError::backend(&key, waited, backend()),
            LockError::Lost { key: key.clone(), reason: LostReason::Expired },
            LockError::Nested { key: key.clone() },
            LockError::InvalidOption { option: "expire", value: waited, limit: "it must be more" },
            LockError::InvalidKey { key, problem: KeyProblem::Braces },
            LockError::NoManager,
            LockError::AlreadyInstalled,
            LockError::ShutDown,
            LockError::connect("redis://127.0.0.1:6379", backend()),
            LockError::ping("redis://127.0.0.1:6379", backend()),
        ]
    }

    /// The texts of an error's chain.
    #[track_caller]
    pub(crate) fn says_nothing_twice(error: &dyn Error) -> Vec<String> {
        let chain = std::iter::successors(Some(error), |&error| error.source());
        let texts: Vec<_> = chain.map(ToString::to_string).collect();
        for (place, text) in texts.iter().enumerate() {
            let mut later = texts[place + 1..].iter();
            assert!(later.all(|later| !text.contains(later.as_str())), "{texts:?}");
        }
        texts
    }

    #[test]
    fn no_text_of_a_chain_is_said_twice() {
        for error in errors() {
            let texts = says_nothing_twice(&error);
            let is_of_server = texts[0].contains("the server is gone");
            assert_eq!(
                texts.len(),
                if is_of_server { 2 } else { 1 },
                "the root is told: {texts:?}"
            );
        }
    }

    #[test]
    fn a_mistake_says_in_a_panic_how_it_is_mended() {
        for error in errors() {
            let debug = format!("{error:?}");
            let fields = ["Contended {", "Backend {", "Lost {", "Connect {", "Ping {"];
            if !fields.iter().any(|fields| debug.starts_with(fields)) {
                assert!(debug.contains(&error.to_string()), "{debug}");
            }
        }
        assert!(LockError::NoManager.to_string().contains("spawn"));
    }

    #[test]
    fn a_ping_over_a_connection_that_stands_speaks_of_no_connecting() {
        let loading = BackendError::new(BackendErrorKind::Loading, "the server loads");
        let error = LockError::ping("redis://127.0.0.1:6379", loading);
        assert!(!error.to_string().contains("connect"), "{error}");
        assert!(error.is_retryable());
    }
}
