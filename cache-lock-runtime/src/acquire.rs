//! An acquisition from the call to the guard.

use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tracing::field::Empty;

use crate::{
    clock::Moment,
    error::{BackendError, BackendErrorKind, LockError},
    guard::LockGuard,
    key::LockKey,
    lease::Lease,
    log::{self, Span},
    manager::Inner,
    options::{LockOptions, Settings},
    queue::{Outcome, Refusal, Waiter},
    scope,
};

/// Acquires `key`, or says why not. All of it ends by `timeout`, or by the bound of one attempt if
/// that is longer.
pub(crate) async fn acquire(
    manager: &Arc<Inner>,
    key: LockKey,
    options: &LockOptions,
) -> Result<LockGuard, LockError> {
    let started = Moment::now();
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
    if !manager.is_closed()
        && let Some(lease) = manager.queues.take(&key, settings, enclosing.as_ref())
    {
        let guard = LockGuard::new(Arc::clone(manager), lease, Duration::ZERO);
        log::debug!(%key, fence = %guard.token(), "lock acquired");
        return Ok(guard);
    }
    // Boxed, since a lock must not make its user's own future large.
    Box::pin(wait(manager, key, settings, enclosing, started)).await
}

async fn wait(
    manager: &Arc<Inner>,
    key: LockKey,
    settings: Settings,
    enclosing: Option<Arc<Lease>>,
    started: Moment,
) -> Result<LockGuard, LockError> {
    // A shutdown waits for it, and so for what it takes back.
    let _running = manager.driver.running();
    let span = Span::new(
        || tracing::debug_span!("cache_lock.acquire", %key, waited = Empty, outcome = Empty),
    );
    let acquired = {
        let waiting = pin!(wait_in_line(manager, &key, &settings, enclosing, started));
        span.around(waiting).await
    };
    let waited = started.until(Moment::now());
    let outcome = match &acquired {
        Ok(_) => "acquired",
        Err(Refusal::Busy { .. }) => "contended",
        Err(Refusal::Backend(_)) => "failed",
        Err(Refusal::ShutDown) => "shut down",
    };
    span.record(waited, outcome);
    let _entered = span.enter();
    match acquired {
        Ok(guard) => {
            log::debug!(%key, fence = %guard.token(), ?waited, "lock acquired");
            Ok(guard)
        }
        // Whatever the server said in the end, asking again is of no use.
        Err(_) if manager.is_closed() => Err(LockError::ShutDown),
        Err(Refusal::Busy { no_expiry }) => {
            manager.counts.contended.fetch_add(1, Ordering::Relaxed);
            log::debug!(%key, ?waited, "lock contended");
            Err(LockError::Contended { key, waited, no_expiry })
        }
        Err(Refusal::Backend(error)) => {
            manager.counts.failed.fetch_add(1, Ordering::Relaxed);
            log::debug!(%key, ?waited, %error, "lock not acquired");
            Err(LockError::backend(&key, waited, error))
        }
        Err(Refusal::ShutDown) => Err(LockError::ShutDown),
    }
}

async fn wait_in_line(
    manager: &Arc<Inner>,
    key: &LockKey,
    settings: &Settings,
    enclosing: Option<Arc<Lease>>,
    started: Moment,
) -> Result<LockGuard, Refusal> {
    let patience = started.after(settings.timeout);
    let end = patience.max(started.after(manager.attempt(settings.expire)));
    loop {
        let waiter = Waiter::new(*settings, enclosing.clone(), patience, end);
        let lease = match manager.queues.wait(key, waiter).await {
            Outcome::Handed(lease) => lease,
            Outcome::Refused(refusal) => return Err(refusal),
            // It was not polled for a while, and is now. It waits on at the end of the line.
            Outcome::Missed if Moment::now() < end => continue,
            Outcome::Missed => {
                let message = "the lock was granted, and passed on since the caller did not run";
                let error = BackendError::new(BackendErrorKind::Stalled, message);
                return Err(Refusal::Backend(error));
            }
        };
        // Also the clock is looked at once more: the process may have been stopped.
        if manager.is_closed() || !lease.is_valid(Moment::now()) {
            manager.give_back(&lease);
            if manager.is_closed() {
                return Err(Refusal::ShutDown);
            }
            continue;
        }
        // The guard comes before all that is logged, the end of the span as well: what reads the log
        // may fail.
        let waited = started.until(Moment::now());
        return Ok(LockGuard::new(Arc::clone(manager), lease, waited));
    }
}
