//! The floor: no fencing token, no renewal, and a fixed pause between two tries.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{Script, aio::MultiplexedConnection};

use super::{EXPIRE, client, patient};
use crate::{
    Error,
    section::{Body, Interval},
};

const RELEASE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                       return redis.call('DEL', KEYS[1]) end return 0";

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(RELEASE));
static OWNERS: AtomicU64 = AtomicU64::new(0);

#[derive(Clone)]
pub(crate) struct Raw {
    connection: MultiplexedConnection,
    retry: Duration,
}

impl Raw {
    pub(super) async fn connect(url: &str, retry_ms: u64) -> Result<Self, Error> {
        let connection =
            client(url)?.get_multiplexed_async_connection_with_config(&patient()).await?;
        Ok(Self { connection, retry: Duration::from_millis(retry_ms) })
    }

    pub(super) async fn section(&self, name: &str, body: Body) -> Result<Interval, Error> {
        let mut connection = self.connection.clone();
        let number = OWNERS.fetch_add(1, Ordering::Relaxed);
        let owner = format!("{}-{number}", std::process::id());
        while !set(&mut connection, name, &owner).await? {
            tokio::time::sleep(self.retry).await;
        }
        let interval = body.run().await;
        release(&mut connection, name, &owner).await?;
        Ok(interval)
    }
}

async fn set(
    connection: &mut MultiplexedConnection,
    record: &str,
    owner: &str,
) -> Result<bool, Error> {
    let mut set = redis::cmd("SET");
    set.arg(record).arg(owner).arg("NX").arg("PX").arg(EXPIRE.as_millis() as u64);
    Ok(set.query_async::<Option<String>>(connection).await?.is_some())
}

async fn release(
    connection: &mut MultiplexedConnection,
    record: &str,
    owner: &str,
) -> Result<(), Error> {
    SCRIPT.key(record).arg(owner).invoke_async::<i64>(connection).await?;
    Ok(())
}

/// A holder that knows nothing of waiters: another program, in another language.
pub(crate) struct Foreign {
    connection: MultiplexedConnection,
    record: String,
    /// How many `SET` it has sent.
    pub(crate) sets: u32,
}

/// What its release runs: the script, and in it `GET` and `DEL`.
pub(crate) const FOREIGN_RELEASE_RUNS: u64 = 3;

impl Foreign {
    pub(crate) async fn connect(url: &str, record: String) -> Result<Self, Error> {
        let mut connection =
            client(url)?.get_multiplexed_async_connection_with_config(&patient()).await?;
        // The script is loaded.
        release(&mut connection, &record, "nobody").await?;
        Ok(Self { connection, record, sets: 0 })
    }

    pub(crate) async fn section(&mut self, body: Body) -> Result<Interval, Error> {
        loop {
            self.sets += 1;
            if set(&mut self.connection, &self.record, "foreign").await? {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let interval = body.run().await;
        release(&mut self.connection, &self.record, "foreign").await?;
        Ok(interval)
    }
}
