//! One attribute turns an async function into a critical section that is exclusive across every
//! process of a fleet, through Redis.
//!
//! ```
//! use cache_lock::{LockError, LockManager, cache_lock};
//!
//! #[cache_lock(prefix = "room", key = "{room}", timeout = "2s", expire = "10s", bind = lock)]
//! async fn reserve(room: u32, student: &str) -> Result<String, LockError> {
//!     // At most one of these per room, in the whole fleet; the token fences the writes.
//!     Ok(format!("{student} has room {room}, with token {}", lock.token()))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), LockError> {
//! // Once, when the program starts: `LockManager::connect("redis://..").await?`, or in memory.
//! let locks = LockManager::in_memory();
//! locks.install()?;
//!
//! println!("{}", reserve(42, "Ann").await?);
//!
//! // Before it ends: releases what is held, and waits for releases that are under way.
//! locks.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! - [`macro@cache_lock`] explains the attribute: arguments, keys, errors, cancellation.
//! - [`LockManager`] is what a program has one of; it also takes locks without the attribute.
//! - [`LockManager::single_flight`] computes a value once for all who ask for it, in a process or a
//!   fleet.
//! - [`LockError`] tells contention, failures of the server, and lost locks apart.
//! - [`FencingToken`] is what protects the data when a lock is lost unnoticed. A lock with a lease can
//!   be: a holder that is stopped for longer than that finishes its request when it wakes up.
//!
//! | feature | |
//! |---|---|
//! | `redis` (default) | locks on a Redis server; without it there are those in memory |
//! | `tls` | `rediss://` URLs |
//! | `uuid` | `Uuid` as a part of a key |
//! | `bson-2`, `bson-3` | `ObjectId` as a part of a key: bson 2 is what `mongodb` 3 uses by default |
//! | `serde` | [`FencingToken`] as a number; the values of single flights recorded for the fleet |
//!
//! The README has how a lock can fail, what Redis it takes, and which rights its user needs.

#[doc(inline)]
pub use cache_lock_macros::cache_lock_facade as cache_lock;
#[doc(hidden)]
pub use cache_lock_runtime::private;
pub use cache_lock_runtime::*;
