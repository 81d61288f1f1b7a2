//! An acquisition from the call to the guard.

use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tracing::field::Empty;

use crate::{
    clock::Instant,
    driver::Running,
    error::{BackendError, BackendErrorKind, LockError},
    guard::LockGuard,
    key::LockKey,
    key_queues::{Acquire, AcquireOutcome},
    lease::Lease,
    log::{self, Span},
    manager_core::Core,
    options::{LockOptions, Settings},
    protocol::waiter::{Refusal, Waiter},
    scope,
};

/// Acquires `key`, or says why not. All of it ends by `timeout`, or by the bound of one attempt if
/// that is longer.
pub(crate) async fn acquire(
    manager: &Arc<Core>,
    key: LockKey,
    options: &LockOptions,
) -> Result<LockGuard, LockError> {
    let started = Instant::now();
    if manager.is_closed() {
        return Err(LockError::ShutDown);
    }
    let settings = options.resolve(&manager.defaults)?;
    if let Err(problem) = key.validate() {
        return Err(LockError::InvalidKey { key, problem });
    }
    let enclosing = scope::enclosing();
    if scope::is_nested(enclosing.as_ref(), manager.id, &key) {
        return Err(LockError::Nested { key });
    }
    manager.start().map_err(|error| LockError::backend(&key, Duration::ZERO, error))?;
    // A shutdown waits for it, and so for what it takes back.
    let running = manager.driver.running();
    let call = Call { manager, key, settings, enclosing, started, _running: running };
    let mut acquire = call.begin();
    if let Some(acquired) = acquire.at_once() {
        let guard = LockGuard::new(Arc::clone(manager), acquired, Duration::ZERO);
        log::debug!(key = %call.key, fence = %guard.token(), "lock acquired");
        return Ok(guard);
    }
    // Boxed, since a lock must not make its user's own future large.
    Box::pin(call.wait(acquire)).await
}

/// One call.
struct Call<'a> {
    manager: &'a Arc<Core>,
    key: LockKey,
    settings: Settings,
    enclosing: Option<Arc<Lease>>,
    started: Instant,
    _running: Running,
}

impl<'a> Call<'a> {
    /// Waiting for another holder ends then.
    fn patience(&self) -> Instant {
        self.started + self.settings.timeout
    }

    /// All waiting ends then.
    fn end(&self) -> Instant {
        self.patience().max(self.started + self.manager.attempt(self.settings.expire))
    }

    fn begin(&self) -> Acquire<'a> {
        let enclosing = self.enclosing.clone();
        let waiter = Waiter::new(self.settings, enclosing, self.patience(), self.end());
        self.manager.queues.acquire(&self.key, waiter)
    }

    async fn wait(self, acquire: Acquire<'a>) -> Result<LockGuard, LockError> {
        let key = &self.key;
        let span = Span::new(
            || tracing::debug_span!("cache_lock.acquire", %key, waited = Empty, outcome = Empty),
        );
        let acquired = {
            let waiting = pin!(self.guard(acquire));
            span.around(waiting).await
        };
        let waited = self.started.elapsed();
        let outcome = match &acquired {
            Ok(_) => "acquired",
            Err(Refusal::Busy { .. }) => "contended",
            Err(Refusal::Backend(_)) => "failed",
            Err(Refusal::ShutDown) => "shut down",
        };
        span.record(waited, outcome);
        let _entered = span.enter();
        let Self { manager, key, .. } = &self;
        match acquired {
            Ok(guard) => {
                log::debug!(%key, fence = %guard.token(), ?waited, "lock acquired");
                Ok(guard)
            }
            // Asking again has no use, whatever the server said in the end.
            Err(_) if manager.is_closed() => Err(LockError::ShutDown),
            Err(Refusal::Busy { no_expiry }) => {
                manager.counts.contended.fetch_add(1, Ordering::Relaxed);
                log::debug!(%key, ?waited, "lock contended");
                Err(LockError::Contended { key: key.clone(), waited, no_expiry })
            }
            Err(Refusal::Backend(error)) => {
                manager.counts.failed.fetch_add(1, Ordering::Relaxed);
                log::debug!(%key, ?waited, %error, "lock not acquired");
                Err(LockError::backend(key, waited, error))
            }
            Err(Refusal::ShutDown) => Err(LockError::ShutDown),
        }
    }

    /// Waits for a guard.
    async fn guard(&self, mut acquire: Acquire<'a>) -> Result<LockGuard, Refusal> {
        let manager = self.manager;
        loop {
            let acquired = match acquire.await {
                AcquireOutcome::Acquired(acquired) => acquired,
                AcquireOutcome::Refused(refusal) => return Err(refusal),
                // The caller was not polled for a while, and is now. It waits on as the last of the queue.
                AcquireOutcome::Missed if Instant::now() < self.end() => {
                    acquire = self.begin();
                    continue;
                }
                AcquireOutcome::Missed => {
                    let message = "the lock was granted, but the caller was not polled in time, so the \
                                   next waiter got it";
                    let error = BackendError::new(BackendErrorKind::Stalled, message);
                    return Err(Refusal::Backend(error));
                }
            };
            let now = Instant::now();
            // The process may have been stopped since the answer, so the clock counts.
            if manager.is_closed() || !acquired.lease.is_valid(now) {
                manager.give_back(&acquired);
                if manager.is_closed() {
                    return Err(Refusal::ShutDown);
                }
                acquire = self.begin();
                continue;
            }
            // The guard is made before anything is logged: a subscriber may panic.
            return Ok(LockGuard::new(Arc::clone(manager), acquired, now - self.started));
        }
    }
}
