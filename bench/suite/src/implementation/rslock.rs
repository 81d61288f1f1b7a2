//! rslock: tries again after a random pause of up to `retry_delay`, and after each try that failed
//! sends a release, as Redlock asks of it. Its defaults are a delay of 200 ms; `acquire` tries for
//! ever.

use std::time::Duration;

use rslock::LockManager;

use super::{EXPIRE, Tuning, client};
use crate::{
    Error,
    section::{Body, Interval},
};

#[derive(Clone)]
pub(crate) struct Rslock(LockManager);

impl Rslock {
    pub(super) fn new(url: &str, tuning: Tuning) -> Result<Self, Error> {
        Ok(Self(match tuning {
            Tuning::Defaults => LockManager::new(vec![url]),
            Tuning::Retry(ms) => {
                let mut manager = LockManager::from_clients(vec![client(url)?]);
                // The count is high because `acquire` does not pause between two series of tries.
                manager.set_retry(u32::MAX, Duration::from_millis(ms));
                manager
            }
        }))
    }

    pub(super) async fn section(&self, name: &str, body: Body) -> Result<Interval, Error> {
        let guard = self.0.acquire(name.as_bytes(), EXPIRE).await?;
        let interval = body.run().await;
        guard.release().await;
        Ok(interval)
    }
}
