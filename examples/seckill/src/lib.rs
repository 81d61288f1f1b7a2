//! A flash sale over MongoDB, guarded by `cache-lock`: many buyers at once, few pieces.
//!
//! [`shop`] is what there is to see: the same purchase without a lock, under a lock, under a
//! lock with fenced writes, and as one conditional update. The rest lets buyers loose on it
//! ([`buyers`]), counts what was sold ([`audit`]) and says so ([`report`]).

pub mod audit;
pub mod buyers;
pub mod cli;
pub mod inventory;
pub mod latency;
pub mod model;
pub mod plot;
pub mod processes;
pub mod report;
pub mod run;
pub mod shop;
#[cfg(not(feature = "mongodb"))]
mod without_mongodb;
pub mod worker;

/// MongoDB, or what stands in for it.
mod server {
    /// How to have a database in place of what is in memory.
    pub(crate) const FOR_ONE: &str = if cfg!(feature = "mongodb") {
        "--mongodb URL for a database"
    } else {
        "for a database build with --features mongodb, and give --mongodb URL"
    };

    #[cfg(not(feature = "mongodb"))]
    pub(crate) use crate::without_mongodb::{Mongo, MongoInventory, mongodb_at};
    #[cfg(feature = "mongodb")]
    pub(crate) use {
        crate::inventory::MongoInventory,
        example_support::{Mongo, mongodb_at},
    };
}

use cache_lock::LockError;
use example_support::{Signal, Unusable};

use crate::inventory::InventoryError;
use crate::shop::PurchaseError;

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
    /// The inventory cannot be read or written, so nothing is known about the sale.
    #[error("the inventory failed: {0}")]
    Inventory(#[from] InventoryError),
    /// What was left half done could not be completed.
    #[error("an item cannot be settled: {0}")]
    Settle(#[from] PurchaseError),
    /// A worker process cannot be started or talked to.
    #[error("a worker process failed: {0}")]
    Worker(#[source] std::io::Error),
    /// JSON that cannot be written, or a message between processes that cannot be read.
    #[error("JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The picture cannot be written.
    #[error("cannot write {path}: {source}")]
    Plot {
        /// Where it was to go.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// Ctrl-C or SIGTERM.
    #[error(transparent)]
    Told(#[from] Signal),
}
