//! Beds in rooms, reserved and paid for, guarded by `cache-lock`.
//!
//! [`hostel`] is what there is to see: a reservation, a move and a cancellation, which change several
//! documents and the books of a payment provider, under the locks of the student and of the room, with
//! fenced writes; and [`settle`], which completes or undoes what a crash left. The rest lets students
//! loose on it ([`visits`]), checks what came of it ([`audit`]) and says so ([`report`]).
//!
//! ```
//! use cache_lock::LockManager;
//! use hostel::hostel::Hostel;
//! use hostel::model::{Room, Student};
//! use hostel::provider::LocalProvider;
//! use hostel::store::{LocalStore, Store};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), hostel::error::HostelError> {
//! let store = LocalStore::default();
//! store.add_rooms(&[Room::new(1, 1, 900)]).await?;
//! store.enrol(&["ann", "bob"].map(|id| Student::new(id.to_owned()))).await?;
//! let hostel = Hostel {
//!     name: "seaside".to_owned(),
//!     locks: LockManager::in_memory(), // or LockManager::connect(url).await?
//!     store,                           // or a MongoStore
//!     provider: LocalProvider::default(),
//!     steps: None,
//! };
//! hostel.recover().await?; // at each start
//!
//! assert_eq!(hostel.reserve("ann", 1, "payment-1").await?.price, 900);
//! assert!(hostel.reserve("bob", 1, "payment-2").await.is_err()); // full, and nothing is paid
//! hostel.cancel("ann").await?;
//! assert_eq!(hostel.reserve("bob", 1, "payment-3").await?.room, 1);
//! # Ok(())
//! # }
//! ```

pub mod audit;
pub mod cli;
pub mod error;
mod fleet;
pub mod hostel;
pub mod model;
pub mod provider;
pub mod report;
pub mod run;
pub mod settle;
pub mod store;
pub mod visits;
pub mod worker;

use cache_lock::LockError;
use example_support::{Signal, Unusable};

use crate::error::HostelError;
use crate::store::StoreError;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The arguments do not go together.
    #[error("{0}")]
    Usage(String),
    /// A server that was asked for cannot be used.
    #[error(transparent)]
    Unusable(#[from] Unusable),
    /// The lock manager could not be set up.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The documents cannot be read or written, so nothing is known about the hostel.
    #[error("the store failed: {0}")]
    Store(#[from] StoreError),
    /// What was left half done cannot be looked for, or the provider's books cannot be read.
    #[error("the hostel failed: {0}")]
    Hostel(#[from] HostelError),
    /// A database cannot be set up or removed.
    #[error("MongoDB: {}", example_support::reason(.0))]
    Database(#[from] mongodb::error::Error),
    /// A worker process cannot be started or talked to.
    #[error("a worker process failed: {0}")]
    Worker(#[source] std::io::Error),
    /// JSON that cannot be written, or a message between processes that cannot be read.
    #[error("JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Ctrl-C or SIGTERM.
    #[error(transparent)]
    Told(#[from] Signal),
}
