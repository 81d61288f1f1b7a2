//! The waiting protocol (`docs/protocol.md`): how the callers of a manager wait for a key, and how the key
//! goes from one manager to the next.
//!
//! It has no clock, no network and no lock: [`machine::Machine`] is told what happened and when, changes the
//! [`KeyQueue`](key_queue::KeyQueue) of a key, and returns effects. Walks through the model of the protocol
//! are replayed on it.

pub(crate) mod backoff;
pub(crate) mod cohort;
pub(crate) mod effects;
pub(crate) mod key_queue;
pub(crate) mod machine;
pub(crate) mod messages;
pub(crate) mod phase;
#[cfg(all(test, feature = "redis"))]
mod replay;
#[cfg(all(test, feature = "redis"))]
mod view;
pub(crate) mod waiter;
mod waiter_queue;
