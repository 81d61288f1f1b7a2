//! What an expansion needs of the standard library. In a user's crate `::core` may be a dependency, and
//! `Ok` or `bool` something else.
//!
//! Variants and functions stand here by themselves: of a path over a type that is not found, rustc makes an
//! error of its own, which offers to import the type.

use std::time::Duration;

pub use core::{
    option::Option::{self, None, Some},
    pin::pin,
    primitive::{bool, str},
    result::Result::{Err, Ok},
};

use crate::{error::LockError, guard::LockGuard, manager::LockManager};

/// The manager that `with` names. The type of the parameter makes a reference, a `Box` or an `Arc` do as
/// well.
///
/// # Errors
/// None: a result, as `manager` has one.
pub fn cloned(locks: &LockManager) -> Result<LockManager, LockError> {
    Ok(locks.clone())
}

/// A duration that is written as a literal.
#[must_use]
pub const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What a body with a condition sees as the guard.
#[must_use]
pub fn lend(guard: &Option<LockGuard>) -> Option<&LockGuard> {
    guard.as_ref()
}

/// Whether another holder has the lock.
#[must_use]
pub fn is_contended(error: &LockError) -> bool {
    error.is_contended()
}
