//! What every task of the fleet does first, and what this example is about.
//!
//! Nobody is told who does what: each task asks for what it needs, with the code that makes it.

use std::time::Duration;

use cache_lock::single_flight::{Local, Recorded};
use cache_lock::{FencingToken, LockError, LockKey, LockManager, LockOptions, SingleFlight};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::database::{Database, DatabaseError, Outcome, Pool, TARGET};

/// Each process opens its pool, and keeps it: there is nothing that another one could use.
const POOL: SingleFlight<Local> = SingleFlight::new().local().keep(Duration::MAX).lock(PATIENT);

/// One process migrates, and the record tells the others; also those that start within a minute, of
/// which there are none here.
const SCHEMA: SingleFlight<Recorded> =
    SingleFlight::new().record(Duration::from_secs(60)).lock(PATIENT);

/// A process that dies in the middle keeps the others waiting for 2 seconds.
const PATIENT: LockOptions =
    LockOptions::new().timeout(Duration::from_secs(60)).expire(Duration::from_secs(2));

/// Why a task could not start.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// It had not its turn, or lost it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A later holder of the lock has been at the schema, so this one's write was refused.
    #[error("the fence of the schema refused token {token}: a later holder has been there")]
    Refused {
        /// The token that came too late.
        token: i64,
    },
    /// As it was asked for.
    #[error("attempt {0} at the migration fails, as --failures has it")]
    Injected(i64),
}

/// The schema that the tasks can rely on. It is what is recorded in Redis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// Its version.
    pub version: i32,
    /// The process that has migrated it last.
    pub migrated_by: u32,
}

/// What goes wrong on purpose.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Faults {
    /// So many attempts at the migration fail.
    pub failures: u32,
    /// The first attempt that does not fail stops half way, and waits for its end.
    pub hang: bool,
    /// How long each step takes.
    pub step: Duration,
}

/// A process of the fleet, as its tasks see it.
#[derive(Debug, Clone)]
pub struct Process<D> {
    /// Its number.
    pub number: u32,
    /// Its lock manager.
    pub locks: LockManager,
    /// Where its pool comes from.
    pub database: D,
    /// The name of the run, so that runs on one server do not meet.
    pub run: String,
    /// What goes wrong.
    pub faults: Faults,
    /// Is set to `true` when the migration is half way, and hangs.
    pub half_way: watch::Sender<bool>,
}

impl<D: Database> Process<D> {
    /// Starts a task: it gets a pool and a schema, and does what it is there for.
    ///
    /// # Errors
    /// See [`StartError`]. The attempt can be repeated.
    pub async fn start(&self, task: u32) -> Result<(), StartError> {
        let pool = self.pool().await?;
        let schema = self.schema(&pool).await?;
        Ok(pool.book(task, schema.version).await?)
    }

    fn key(&self, what: &str) -> LockKey {
        LockKey::new("startup").part(&self.run).part(what)
    }

    /// The pool of this process.
    async fn pool(&self) -> Result<D::Pool, StartError> {
        let open = || async { Ok(self.database.open(self.number).await?) };
        let pool = self.locks.single_flight(self.key("pool"), &POOL, open).await;
        pool.map_err(|error| error.into_inner())
    }

    /// The schema of the fleet.
    async fn schema(&self, pool: &D::Pool) -> Result<Schema, StartError> {
        let migrate = |token| self.migrate(pool, token);
        let schema = self.locks.single_flight_fenced(self.key("schema"), &SCHEMA, migrate).await;
        schema.map_err(|error| error.into_inner())
    }

    /// Runs in one process at a time, but a process that was stopped for longer than its lease does
    /// not know that it is late: so each write is fenced, and each step can be taken twice.
    async fn migrate(&self, pool: &D::Pool, token: FencingToken) -> Result<Schema, StartError> {
        let token = token.as_i64();
        let attempt = pool.begin(self.number, token).await?;
        let migrated = self.migrate_in(pool, token, attempt).await;
        let outcome = match &migrated {
            Ok(outcome) => *outcome,
            Err(_) => Outcome::Failed,
        };
        pool.end(attempt, outcome).await?;
        migrated?;
        Ok(Schema { version: TARGET, migrated_by: self.number })
    }

    async fn migrate_in(
        &self,
        pool: &D::Pool,
        token: i64,
        attempt: i64,
    ) -> Result<Outcome, StartError> {
        let claimed = pool.claim(token).await?;
        let version = claimed.ok_or(StartError::Refused { token })?;
        let failures = i64::from(self.faults.failures);
        for next in version + 1..=TARGET {
            tokio::time::sleep(self.faults.step).await;
            if attempt <= failures {
                return Err(StartError::Injected(attempt));
            }
            pool.apply(next).await?;
            if !pool.advance(token, next).await? {
                return Err(StartError::Refused { token });
            }
            if self.faults.hang && attempt == failures + 1 {
                self.half_way.send_replace(true);
                std::future::pending::<()>().await;
            }
        }
        Ok(if version < TARGET { Outcome::Migrated } else { Outcome::NothingToDo })
    }
}
