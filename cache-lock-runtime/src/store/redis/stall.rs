//! Whether a connection stands still because its runtime is blocked, or because the server is slow.

use std::{sync::Arc, time::Duration};

use tokio::runtime::Handle;

use super::{RedisCore, RedisStore, connections::Connection};
use crate::clock::Instant;

/// The last look at the server over the driver's connection.
pub(super) type Probe = tokio::sync::Mutex<Option<Probed>>;

#[derive(Clone, Copy)]
pub(super) struct Probed {
    at: Instant,
    answered: bool,
}

impl RedisStore {
    /// Waits until a runtime's connection has brought no answer for `patience` though the server
    /// answers over the driver's. For the driver.
    pub(crate) async fn stalled(&self, runtime: &Handle, patience: Duration) {
        let RedisCore { connections, driver, .. } = &*self.inner;
        let mut before = connections.current(runtime);
        let mut answered = count(before.as_ref());
        loop {
            // On a distant server an answer takes as long as that.
            let usual =
                before.as_ref().map_or(Duration::ZERO, |connection| connection.window.latency());
            let start = Instant::now();
            driver.sleep_until(start + patience.max(usual * 2)).await;
            let stands_still = |now: Option<&Arc<Connection>>| {
                now.map(Arc::as_ptr) == before.as_ref().map(Arc::as_ptr) && count(now) == answered
            };
            if stands_still(connections.current(runtime).as_ref())
                && self.answers_since(start).await
                && stands_still(connections.current(runtime).as_ref())
            {
                return;
            }
            before = connections.current(runtime);
            answered = count(before.as_ref());
        }
    }

    /// Whether the server answers a request that was sent after `start`. All callers share one request.
    async fn answers_since(&self, start: Instant) -> bool {
        let mut last = self.inner.probe.lock().await;
        if let Some(probed) = *last
            && start <= probed.at
        {
            return probed.answered;
        }
        let at = Instant::now();
        let give_up = at + self.inner.attempt;
        // The extension of no lease: a script that every user of locks may run.
        let answered = self.extend(&[], give_up, |_| (), give_up).await.is_ok();
        *last = Some(Probed { at, answered });
        answered
    }
}

fn count(connection: Option<&Arc<Connection>>) -> u64 {
    connection.map_or(0, |connection| connection.window.answered())
}
