//! The expansion of the attribute, on the memory store.

mod arguments;
mod body;
mod drop_order;
mod future;
mod handlers;
mod key;

use std::{
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use cache_lock::{
    LockError, LockGuard, LockKey, LockKeyPart, LockManager, LockOptions, PartWriter, cache_lock,
};

/// Whether the lock is held.
async fn is_held(locks: &LockManager, key: impl Into<LockKey>) -> bool {
    match locks.acquire(key.into(), &LockOptions::new().timeout(Duration::ZERO)).await {
        Ok(guard) => {
            guard.release().await.expect("the memory store answers");
            false
        }
        Err(error) => {
            // Asked from inside of the body.
            let nested = matches!(error, LockError::Nested { .. });
            assert!(error.is_contended() || nested, "{error}");
            true
        }
    }
}

/// What happens, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn push(&self, event: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes down when it is dropped, and whether the lock was still held then.
struct Witness {
    name: &'static str,
    log: Log,
    locks: LockManager,
}

impl Drop for Witness {
    fn drop(&mut self) {
        // The memory store answers in the first poll.
        let probe = pin!(is_held(&self.locks, "witness"));
        let held = match probe.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(held) => held.to_string(),
            Poll::Pending => "unknown".to_owned(),
        };
        self.log.push(format!("{} dropped, held: {held}", self.name));
    }
}

struct Witnesses {
    log: Log,
    locks: LockManager,
}

impl Witnesses {
    fn new() -> Self {
        Self { log: Log::default(), locks: LockManager::in_memory() }
    }

    fn witness(&self, name: &'static str) -> Witness {
        Witness { name, log: self.log.clone(), locks: self.locks.clone() }
    }
}
