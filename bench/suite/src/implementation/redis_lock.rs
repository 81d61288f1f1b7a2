//! redis-lock: `lock_across` one connection. Its defaults are a lease of 10 ms, which nothing
//! extends, and tries every 100 ms for 10 s.

use std::{sync::Arc, time::Duration};

use redis_0_27::{AsyncConnectionConfig, Client, aio::MultiplexedConnection};
use redis_lock::{LockAcrossOptions, lock_across};
use tokio::sync::Mutex;

use super::{EXPIRE, TIMEOUT, Tuning};
use crate::{
    Error,
    section::{Body, Interval},
};

#[derive(Clone)]
pub(crate) struct RedisLock {
    connection: MultiplexedConnection,
    /// As in its documentation: a connection behind a mutex, one for all callers.
    shared: Arc<Mutex<MultiplexedConnection>>,
    tuning: Tuning,
}

impl RedisLock {
    pub(super) async fn connect(url: &str, tuning: Tuning) -> Result<Self, Error> {
        let client = Client::open(url)?;
        let config = AsyncConnectionConfig::new().set_response_timeout(TIMEOUT);
        let connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        Ok(Self { shared: Arc::new(Mutex::new(connection.clone())), connection, tuning })
    }

    pub(super) async fn section(&self, name: &str, body: Body) -> Result<Interval, Error> {
        let (connection, options) = match self.tuning {
            Tuning::Defaults => (Arc::clone(&self.shared), LockAcrossOptions::default()),
            Tuning::Retry(ms) => (
                // A mutex for each caller: requests are pipelined on the one connection.
                Arc::new(Mutex::new(self.connection.clone())),
                LockAcrossOptions {
                    ttl: EXPIRE,
                    retry: Duration::from_millis(ms),
                    duration: TIMEOUT,
                },
            ),
        };
        let outcome = lock_across(&[connection], name, body.run(), options).await;
        // The error cannot be shared among threads, as it may hold a panic.
        outcome.map_err(|error| error.to_string().into())
    }
}
