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
//! - [`LockManager`]: a program has one; it also takes locks without the attribute.
//! - [`LockManager::single_flight`] computes a value once for many callers, in a process or a fleet.
//! - [`LockError`] tells contention, failures of the server, and lost locks apart.
//! - [`FencingToken`] protects the data when a lock is lost unnoticed: a holder that is stopped for longer than
//!   its lease finishes its request when it wakes up.
//!
//! | feature | |
//! |---|---|
//! | `redis` (default) | locks on a Redis server; without it, locks in memory alone |
//! | `tls` | `rediss://` URLs |
//! | `uuid` | `Uuid` as a part of a key |
//! | `bson-2`, `bson-3` | `ObjectId` as a part of a key: bson 2 is what `mongodb` 3 uses by default |
//! | `single-flight` (default) | computations that callers share |
//! | `serde` | [`FencingToken`] as a number; with `single-flight`, values recorded for the fleet |
//!
//! The repository's `docs/` say how a lock can fail (`fencing.md`), which servers and rights it needs
//! (`redis.md`), and how it fits into a program (`in-a-program.md`).

#[doc(inline)]
pub use cache_lock_macros::cache_lock_facade as cache_lock;
#[doc(hidden)]
pub use cache_lock_runtime::private;
pub use cache_lock_runtime::*;
