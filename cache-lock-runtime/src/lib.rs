//! The runtime of [cache-lock](https://docs.rs/cache-lock): lock managers, leases, fencing tokens
//! and the stores that keep locks.
//!
//! Use it through the crate `cache-lock`, which adds the attribute.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod acquire;
mod clock;
mod driver;
mod error;
mod fence;
#[cfg(feature = "single-flight")]
mod flights;
mod guard;
mod key;
mod key_queues;
mod lease;
mod log;
mod manager;
mod manager_core;
mod mutex;
mod options;
mod owner;
#[doc(hidden)]
pub mod private;
mod protocol;
mod renew;
mod scope;
mod signal;
#[cfg(feature = "single-flight")]
pub mod single_flight;
mod store;
mod timer_queue;
mod unharmed;

#[cfg(feature = "single-flight")]
pub use crate::single_flight::{SingleFlight, SingleFlightError};
#[cfg(feature = "tls")]
pub use crate::store::redis::TlsConfig;
pub use crate::{
    error::{BackendError, BackendErrorKind, LockError, LostReason},
    fence::FencingToken,
    guard::LockGuard,
    key::{KeyProblem, LockKey, LockKeyPart, PartWriter},
    manager::{InHand, LockManager, LockManagerBuilder, LockStats},
    options::{LockOptions, OnLost},
    protocol::messages::ReleaseOutcome,
    store::memory::MemoryStore,
};
