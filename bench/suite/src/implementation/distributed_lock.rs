//! distributed-lock, the part for Redis: with one server it never waits, whatever the timeout says:
//! `acquire` fails at once if the lock is held. Its defaults therefore fail under contention;
//! where it is tuned, the loop around `try_acquire` is ours. It has a task for each lock, which
//! extends the lease: the first time when the lock is acquired.

use std::{sync::Arc, time::Duration};

use distributed_lock_core::traits::{DistributedLock as _, LockHandle as _, LockProvider as _};
use distributed_lock_redis::{RedisLockHandle, RedisLockProvider};
use fred::{
    interfaces::ClientLike,
    prelude::{RedisClient, RedisConfig},
    types::{ConnectionConfig, TcpConfig},
};
use tokio::time::Instant;

use super::{EXPIRE, TIMEOUT, Tuning};
use crate::{
    Error,
    section::{Body, Interval},
};

#[derive(Clone)]
pub(crate) struct DistributedLock {
    provider: Arc<RedisLockProvider>,
    tuning: Tuning,
}

impl DistributedLock {
    pub(super) async fn connect(url: &str, tuning: Tuning) -> Result<Self, Error> {
        let provider = match tuning {
            Tuning::Defaults => RedisLockProvider::new(url).await?,
            Tuning::Retry(_) => {
                let tcp = TcpConfig { nodelay: Some(true), ..TcpConfig::default() };
                let connection = ConnectionConfig { tcp, ..ConnectionConfig::default() };
                let config = RedisConfig::from_url(url)?;
                let client = RedisClient::new(config, None, Some(connection), None);
                client.connect();
                client.wait_for_connect().await?;
                RedisLockProvider::builder()
                    .client(client)
                    .expiry(EXPIRE)
                    .min_validity(EXPIRE / 2)
                    .extension_cadence(EXPIRE / 3)
                    .build()
                    .await?
            }
        };
        Ok(Self { provider: Arc::new(provider), tuning })
    }

    pub(super) async fn section(&self, name: &str, body: Body) -> Result<Interval, Error> {
        let handle = self.hold(name).await?;
        let interval = body.run().await;
        handle.release().await?;
        Ok(interval)
    }

    async fn hold(&self, name: &str) -> Result<RedisLockHandle, Error> {
        // The owner's token is the lock object's, so each caller needs one of its own.
        let lock = self.provider.create_lock(name);
        let Tuning::Retry(ms) = self.tuning else { return Ok(lock.acquire(Some(TIMEOUT)).await?) };
        let give_up = Instant::now() + TIMEOUT;
        loop {
            match lock.try_acquire().await? {
                Some(handle) => return Ok(handle),
                None if Instant::now() > give_up => return Err("timed out".into()),
                None => tokio::time::sleep(Duration::from_millis(ms)).await,
            }
        }
    }
}
