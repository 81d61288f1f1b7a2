//! async-redis-lock: a script for each try, and a task for each lock, which extends its lease. Its
//! defaults are a lease of 3 s, extended every second, and tries every 100 ms for one second.

use std::time::Duration;

use async_redis_lock::{Lock, Locker, Options};

use super::{EXPIRE, TIMEOUT, Tuning, client};
use crate::{
    Error,
    section::{Body, Interval},
};

#[derive(Clone)]
pub(crate) struct AsyncRedisLock {
    locker: Locker,
    options: Options,
}

impl AsyncRedisLock {
    pub(super) async fn connect(url: &str, tuning: Tuning) -> Result<Self, Error> {
        Ok(match tuning {
            Tuning::Defaults => {
                Self { locker: Locker::from_redis_url(url).await?, options: Options::default() }
            }
            Tuning::Retry(ms) => Self {
                locker: Locker::from_client(client(url)?).await?,
                options: Options::new()
                    .retry(Duration::from_millis(ms))
                    .timeout(Some(TIMEOUT))
                    .ttl(EXPIRE)
                    .extend(EXPIRE / 3),
            },
        })
    }

    pub(super) async fn section(&self, name: &str, body: Body) -> Result<Interval, Error> {
        let lock = self.hold(name).await?;
        let interval = body.run().await;
        lock.release().await?;
        Ok(interval)
    }

    pub(super) async fn hold(&self, name: &str) -> Result<Lock, Error> {
        Ok(self.locker.acquire_with_options(&self.options, name).await?)
    }
}
