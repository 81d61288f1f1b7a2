//! What the fleet keeps: its schema, with the attempts to migrate it, the pools that were opened, and
//! what its tasks write. In MongoDB, or inside this process.
//!
//! Each operation is one request, atomic on one document, or can be done twice without harm. That
//! they are done in the right order, and by the right process, is up to the caller.

use std::future::Future;

use serde::{Deserialize, Serialize};

mod local;
pub(crate) mod mongo;

pub use local::{LocalDatabase, LocalPool};
pub use mongo::{MongoDatabase, MongoPool};

/// The version that the tasks need. Each version is made of the one before it by one step.
pub const TARGET: i32 = 3;

/// Why an operation failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// MongoDB did not do what it was asked, or it is not known whether it did.
    #[error("MongoDB: {0}")]
    Server(#[from] mongodb::error::Error),
    /// A task wrote what the schema does not have.
    #[error("the schema has version {found}, and not {TARGET}")]
    NotMigrated {
        /// The version that is there.
        found: i32,
    },
}

/// Shorthand for the outcome of an operation.
pub type Result<T> = std::result::Result<T, DatabaseError>;

/// How an attempt at the migration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did not end: it is under way, or its process has died.
    Begun,
    /// It failed.
    Failed,
    /// The schema is of the version that is needed, by this attempt.
    Migrated,
    /// It was of that version already.
    NothingToDo,
}

/// An attempt at the migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number in the fleet, from 1.
    #[serde(rename = "_id")]
    pub number: i64,
    /// The process that made it.
    pub process: u32,
    /// The fencing token that it was made under.
    pub token: i64,
    /// How it ended.
    pub outcome: Outcome,
}

/// What is there when all is over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// The process of each pool that was opened.
    pub pools: Vec<u32>,
    /// The attempts at the migration, in their order.
    pub attempts: Vec<Attempt>,
    /// How many tasks have written what they had to.
    pub bookings: u64,
    /// The version of the schema.
    pub version: i32,
}

/// Where pools of connections come from.
pub trait Database: Clone + Send + Sync + 'static {
    /// A pool of connections. A process has one, and clones of it.
    type Pool: Pool;

    /// Opens a pool, and notes that `process` has done so.
    fn open(&self, process: u32) -> impl Future<Output = Result<Self::Pool>> + Send;

    /// Reads what is there.
    fn tally(&self) -> impl Future<Output = Result<Tally>> + Send;

    /// Removes all that this run has written.
    fn discard(&self) -> impl Future<Output = Result<()>> + Send;
}

/// A pool of connections, and what is done over it.
pub trait Pool: Clone + Send + Sync + 'static {
    /// Counts an attempt at the migration. Returns its number.
    fn begin(&self, process: u32, token: i64) -> impl Future<Output = Result<i64>> + Send;

    /// Notes how an attempt ended.
    fn end(&self, attempt: i64, outcome: Outcome) -> impl Future<Output = Result<()>> + Send;

    /// Raises the fence of the schema to `token` and reads its version, in a single step. `None` if a
    /// later token has been here.
    fn claim(&self, token: i64) -> impl Future<Output = Result<Option<i32>>> + Send;

    /// Takes the step that makes this version of the one before. It may be taken twice.
    fn apply(&self, version: i32) -> impl Future<Output = Result<()>> + Send;

    /// Notes that the schema has this version, unless a token later than `token` has been here.
    /// Returns whether it was accepted.
    fn advance(&self, token: i64, version: i32) -> impl Future<Output = Result<bool>> + Send;

    /// What a task is there for: it writes a document of the version that it knows.
    fn book(&self, task: u32, version: i32) -> impl Future<Output = Result<()>> + Send;
}
