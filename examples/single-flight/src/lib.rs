//! The start of a fleet: every task of every process needs a pool of connections to its database,
//! of which a process must have one, and a schema, which the fleet must migrate once.
//!
//! [`startup`] is what there is to see. The rest starts tasks and processes ([`tasks`], [`fleet`],
//! [`worker`]), looks at what came of it in the database ([`database`]) and says so ([`report`]).

pub mod cli;
pub mod database;
pub mod fleet;
pub mod report;
pub mod startup;
pub mod tasks;
pub mod worker;

use cache_lock::LockError;
use example_support::{Signal, Unusable};

use crate::database::DatabaseError;

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
    /// The database cannot be read, so nothing is known about the start.
    #[error("the database failed: {0}")]
    Database(#[from] DatabaseError),
    /// A worker process cannot be started or talked to.
    #[error("a worker process failed: {0}")]
    Worker(#[source] std::io::Error),
    /// JSON that cannot be written, or a message between processes that cannot be read.
    #[error("JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The run was told to end.
    #[error(transparent)]
    Ended(#[from] Signal),
}
