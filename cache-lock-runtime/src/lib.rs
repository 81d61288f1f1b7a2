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
mod guard;
mod key;
mod key_queues;
mod lease;
mod log;
mod manager;
mod manager_core;
mod options;
mod owner;
#[doc(hidden)]
pub mod private;
mod protocol;
mod random;
mod renew;
mod scope;
mod signal;
pub mod single_flight;
#[cfg_attr(
    not(all(feature = "redis", feature = "serde")),
    allow(
        dead_code,
        unused_variables,
        reason = "the store in memory answers at once, and only with serde there are values to record"
    )
)]
mod store;
mod timer_queue;

#[cfg(feature = "tls")]
pub use crate::store::redis::TlsConfig;
pub use crate::{
    error::{BackendError, BackendErrorKind, KeyProblem, LockError, LostReason},
    fence::FencingToken,
    guard::LockGuard,
    key::{LockKey, LockKeyPart, PartWriter},
    manager::{InHand, LockManager, LockManagerBuilder, LockStats},
    options::{LockOptions, OnLost},
    protocol::messages::ReleaseOutcome,
    single_flight::{SingleFlight, SingleFlightError},
    store::memory::MemoryStore,
};
