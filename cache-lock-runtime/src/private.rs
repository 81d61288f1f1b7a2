//! What expansions of the attribute call. Not for use by hand: it changes without notice.

use std::pin::Pin;

use crate::{
    acquire, error::LockError, guard::LockGuard, key::LockKey, manager::LockManager,
    options::LockOptions,
};

mod check;
mod names;
mod report;

pub use self::{check::*, names::*, report::*};
pub use crate::key::KeyBuilder;

/// The manager of the scope, else the installed one.
///
/// # Errors
/// [`LockError::NoManager`].
pub fn manager() -> Result<LockManager, LockError> {
    LockManager::current()
}

/// Acquires a lock from a manager, if one was found.
///
/// # Errors
/// Those of [`LockManager::acquire`], and that of finding the manager.
///
/// # Cancel safety
/// That of [`LockManager::acquire`].
pub async fn acquire(
    manager: Result<LockManager, LockError>,
    key: LockKey,
    options: &LockOptions,
) -> Result<LockGuard, LockError> {
    acquire::acquire(manager?.core(), key, options).await
}

/// Polls a body for as long as its lease lasts.
///
/// # Errors
/// [`LockError::Lost`].
///
/// # Cancel safety
/// That of the body.
pub async fn hold<F: Future>(guard: &LockGuard, body: Pin<&mut F>) -> Result<F::Output, LockError> {
    guard.hold(body).await
}

/// Polls a body to its end, whatever becomes of its lease.
///
/// # Cancel safety
/// That of the body.
pub async fn hold_to_end<F: Future>(guard: &LockGuard, body: Pin<&mut F>) -> F::Output {
    guard.hold_to_end(body).await
}

/// Releases a lock after its body has ended.
///
/// # Cancel safety
/// The lock is released in the background.
pub async fn release(guard: LockGuard) {
    if let Some(guard) = guard.finish_at_once() {
        // Boxed, since a lock must not make its user's own future large.
        Box::pin(guard.finish()).await;
    }
}
