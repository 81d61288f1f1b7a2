//! An acquisition from the call to the guard.

use std::{sync::Arc, time::Duration};

use tracing::{Instrument as _, field::Empty};

use crate::{
    clock::Moment,
    error::{BackendError, BackendErrorKind, LockError},
    fence::FencingToken,
    guard::LockGuard,
    key::LockKey,
    lease::{Grant, Lease, valid_until},
    manager::Inner,
    options::{LockOptions, Settings},
    owner::OwnerToken,
    retry::Pace,
    scope,
    store::{Answer, Claim, LockStore},
};

/// Acquires `key`, or says why not. All of it ends by `timeout`, or by the bound of one attempt if
/// that is longer.
pub(crate) async fn acquire(
    manager: &Arc<Inner>,
    key: LockKey,
    options: &LockOptions,
) -> Result<LockGuard, LockError> {
    let started = Moment::now();
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
    let _running = manager.driver.running();

    let span = tracing::debug_span!("cache_lock.acquire", %key, waited = Empty, outcome = Empty);
    let asking = ask_until_granted(manager, &key, &settings, started).instrument(span.clone());
    // Boxed, since a lock must not make its user's own future large.
    let acquired = Box::pin(asking).await;
    let waited = started.until(Moment::now());
    // The guard comes before all that is logged: what reads the log may fail.
    let acquired = acquired.map(|granted| {
        let Granted { owner, fence, sent_at } = granted;
        let (key, manager_id) = (key.clone(), manager.id);
        let grant = Grant { key, owner, fence, settings, sent_at, manager: manager_id, enclosing };
        LockGuard::new(Arc::clone(manager), Lease::new(grant))
    });
    let outcome = match &acquired {
        Ok(_) => "acquired",
        Err(Refusal::Busy { .. }) => "contended",
        Err(Refusal::Backend(_)) => "failed",
        Err(Refusal::ShutDown) => "shut down",
    };
    span.record("waited", tracing::field::debug(waited)).record("outcome", outcome);
    let _entered = span.enter();
    match acquired {
        Ok(guard) => {
            tracing::debug!(%key, fence = %guard.token(), ?waited, "lock acquired");
            Ok(guard)
        }
        // Whatever the server said in the end, asking again is of no use.
        Err(_) if manager.is_closed() => Err(LockError::ShutDown),
        Err(Refusal::Busy { no_expiry }) => {
            tracing::debug!(%key, ?waited, "lock contended");
            Err(LockError::Contended { key, waited, no_expiry })
        }
        Err(Refusal::Backend(error)) => {
            tracing::warn!(%key, ?waited, %error, "lock not acquired");
            Err(LockError::backend(&key, waited, error))
        }
        Err(Refusal::ShutDown) => Err(LockError::ShutDown),
    }
}

enum Refusal {
    Busy { no_expiry: bool },
    Backend(BackendError),
    ShutDown,
}

struct Granted {
    owner: OwnerToken,
    fence: FencingToken,
    sent_at: Moment,
}

async fn ask_until_granted(
    manager: &Arc<Inner>,
    key: &LockKey,
    settings: &Settings,
    started: Moment,
) -> Result<Granted, Refusal> {
    let owner = manager.owners.next();
    let mut pace = Pace::new(manager.owners.random(started.as_nanos()));
    let mut claim = manager.store.claim(key, owner);
    let attempt = manager.attempt(settings.expire);
    let patience = started.after(settings.timeout);
    let end = patience.max(started.after(attempt));
    // What is known from the request before.
    let mut known = None;
    loop {
        if manager.is_closed() {
            return Err(Refusal::ShutDown);
        }
        let asked = Moment::now();
        let overdue = asked.after(attempt);
        let answer = claim.ask(settings.expire, overdue.min(end)).await;
        let now = Moment::now();
        let (refusal, remaining) = match answer {
            Ok(Answer::Granted { owner, fence, sent_at }) => {
                let closed = manager.is_closed();
                if now < valid_until(sent_at, settings.expire) && !closed {
                    return Ok(Granted { owner, fence, sent_at });
                }
                // Not ours to use, since the answer took longer than the lease lasts or the
                // manager has ended, but perhaps ours to give back.
                let until = now.after(settings.expire);
                manager.store.release_detached(key.clone(), owner.clone(), until);
                if closed {
                    return Err(Refusal::ShutDown);
                }
                claim = manager.store.claim(key, owner.successor());
                (Refusal::Backend(late()), None)
            }
            Ok(Answer::Busy { remaining }) => {
                (Refusal::Busy { no_expiry: remaining.is_none() }, remaining)
            }
            Err(error) if !error.is_transient() => return Err(Refusal::Backend(error)),
            Err(error) => {
                // A request that was cut short by the deadline is not overdue, and tells nothing.
                let cut_short = error.kind() == BackendErrorKind::Timeout && end < overdue;
                match known.take() {
                    Some(refusal) if cut_short => (refusal, None),
                    _ => (Refusal::Backend(error), None),
                }
            }
        };
        if now >= patience {
            return Err(refusal);
        }
        pace.pause(&manager.driver, remaining, patience).await;
        if Moment::now() >= patience {
            return Err(refusal);
        }
        known = Some(refusal);
    }
}

fn late() -> BackendError {
    BackendError::new(
        BackendErrorKind::Timeout,
        "the server's answer took longer than the lease that it granted",
    )
}
