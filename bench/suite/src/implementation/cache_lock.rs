//! This crate, without the attribute: it does the same.

use cache_lock::{LockGuard, LockKey, LockManager, LockOptions};

use super::{EXPIRE, TIMEOUT};
use crate::{
    Error,
    section::{Body, Interval},
};

const OPTIONS: LockOptions = LockOptions::new().timeout(TIMEOUT).expire(EXPIRE);

#[derive(Clone)]
pub(crate) struct CacheLock(LockManager);

impl CacheLock {
    pub(super) async fn connect(url: &str, background: bool) -> Result<Self, Error> {
        Ok(Self(LockManager::builder().background_release(background).connect(url).await?))
    }

    pub(super) fn in_memory() -> Self {
        Self(LockManager::in_memory())
    }

    pub(super) async fn section(&self, part: String, body: Body) -> Result<Interval, Error> {
        let body = async |_: &LockGuard| body.run().await;
        Ok(self.0.run(LockKey::new("bench").part(part), &OPTIONS, body).await?)
    }

    pub(super) async fn hold(&self, part: String) -> Result<LockGuard, Error> {
        Ok(self.0.acquire(LockKey::new("bench").part(part), &OPTIONS).await?)
    }

    pub(super) async fn shutdown(&self) {
        self.0.shutdown().await;
    }
}
