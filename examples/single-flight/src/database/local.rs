//! The database inside this process, for a machine without one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Attempt, Database, DatabaseError, Outcome, Pool, Result, TARGET, Tally};

#[derive(Debug, Default)]
struct Collections {
    pools: Vec<u32>,
    attempts: Vec<Attempt>,
    bookings: BTreeSet<u32>,
    fence: i64,
    version: i32,
}

/// Keeps all in memory. Operations are as atomic as the database's, no more.
#[derive(Debug, Clone, Default)]
pub struct LocalDatabase {
    collections: Arc<Mutex<Collections>>,
}

/// A handle of a [`LocalDatabase`].
#[derive(Debug, Clone)]
pub struct LocalPool {
    database: LocalDatabase,
}

impl LocalDatabase {
    /// A request to a database lets other tasks run; so does this one.
    async fn request(&self) -> MutexGuard<'_, Collections> {
        tokio::task::yield_now().await;
        self.collections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Database for LocalDatabase {
    type Pool = LocalPool;

    async fn open(&self, process: u32) -> Result<LocalPool> {
        self.request().await.pools.push(process);
        Ok(LocalPool { database: self.clone() })
    }

    async fn tally(&self) -> Result<Tally> {
        let all = self.request().await;
        Ok(Tally {
            pools: all.pools.clone(),
            attempts: all.attempts.clone(),
            bookings: all.bookings.len() as u64,
            version: all.version,
        })
    }

    async fn discard(&self) -> Result<()> {
        *self.request().await = Collections::default();
        Ok(())
    }
}

impl Pool for LocalPool {
    async fn begin(&self, process: u32, token: i64) -> Result<i64> {
        let mut all = self.database.request().await;
        let number = all.attempts.last().map_or(1, |last| last.number + 1);
        all.attempts.push(Attempt { number, process, token, outcome: Outcome::Begun });
        Ok(number)
    }

    async fn end(&self, attempt: i64, outcome: Outcome) -> Result<()> {
        let mut all = self.database.request().await;
        if let Some(attempt) = all.attempts.iter_mut().find(|one| one.number == attempt) {
            attempt.outcome = outcome;
        }
        Ok(())
    }

    async fn claim(&self, token: i64) -> Result<Option<i32>> {
        let mut all = self.database.request().await;
        if all.fence > token {
            return Ok(None);
        }
        all.fence = token;
        Ok(Some(all.version))
    }

    async fn apply(&self, _: i32) -> Result<()> {
        // There is nothing to index, and nothing old.
        drop(self.database.request().await);
        Ok(())
    }

    async fn advance(&self, token: i64, version: i32) -> Result<bool> {
        let mut all = self.database.request().await;
        let accepted = all.fence <= token;
        if accepted {
            (all.fence, all.version) = (token, version);
        }
        Ok(accepted)
    }

    async fn book(&self, task: u32, version: i32) -> Result<()> {
        let mut all = self.database.request().await;
        if version != TARGET || all.version != TARGET {
            return Err(DatabaseError::NotMigrated { found: all.version });
        }
        all.bookings.insert(task);
        Ok(())
    }
}
