//! How an expansion turns a [`LockError`] into what the function returns.
//!
//! Traits of our own stand before `From<LockError>`, because only they can explain what is missing,
//! at the function's return type.

use crate::LockError;

/// A return type that can carry a failed lock: `Result<T, E>` where `E: From<LockError>`.
#[diagnostic::on_unimplemented(
    message = "`#[cache_lock]` cannot report a lock failure through the return type `{Self}`",
    label = "this return type has no place for a `LockError`",
    note = "return `Result<T, E>` where `E: From<cache_lock::LockError>`, or add `or_else = path` with a function `fn(cache_lock::LockError) -> {Self}`"
)]
pub trait ReportLockError {
    /// The value to return when the lock was not taken, or was lost.
    fn report(error: LockError) -> Self;
}

impl<T, E: FromLockError> ReportLockError for Result<T, E> {
    fn report(error: LockError) -> Self {
        Err(E::from_lock_error(error))
    }
}

/// Every `E: From<LockError>`, under a name that can be explained.
#[diagnostic::on_unimplemented(
    message = "`#[cache_lock]` cannot turn a `LockError` into `{Self}`",
    label = "`From<cache_lock::LockError>` is not implemented for `{Self}`",
    note = "if the type is yours, implement it:\n    impl From<cache_lock::LockError> for {Self} {{\n        fn from(error: cache_lock::LockError) -> Self {{ .. }}\n    }}",
    note = "or add `or_else = path` with a function that makes the return value of a `cache_lock::LockError`"
)]
pub trait FromLockError {
    /// `From::from`
    fn from_lock_error(error: LockError) -> Self;
}

#[diagnostic::do_not_recommend]
impl<E: From<LockError>> FromLockError for E {
    fn from_lock_error(error: LockError) -> Self {
        error.into()
    }
}

/// As [`ReportLockError`], where an `or_else` closure handles all failures but this one.
#[diagnostic::on_unimplemented(
    message = "a lock that is lost while the body runs cannot be reported through the return type `{Self}`",
    label = "this return type has no place for a `LockError`",
    note = "the `or_else` closure handles only the failures before the body",
    note = "return `Result<T, E>` where `E: From<cache_lock::LockError>`, add `on_lost = \"finish\"`, or make `or_else` the path of a function, which handles every failure"
)]
pub trait ReportLostLock {
    /// The value to return when the lock was lost.
    fn report(error: LockError) -> Self;
}

impl<T, E: FromLostLock> ReportLostLock for Result<T, E> {
    fn report(error: LockError) -> Self {
        Err(E::from_lost_lock(error))
    }
}

/// As [`FromLockError`], for [`ReportLostLock`].
#[diagnostic::on_unimplemented(
    message = "a lock that is lost while the body runs cannot be reported: there is no way to turn a `LockError` into `{Self}`",
    label = "`From<cache_lock::LockError>` is not implemented for `{Self}`",
    note = "the `or_else` closure handles only the failures before the body",
    note = "return an error that is `From<cache_lock::LockError>`, add `on_lost = \"finish\"`, or make `or_else` the path of a function, which handles every failure"
)]
pub trait FromLostLock {
    /// `From::from`
    fn from_lost_lock(error: LockError) -> Self;
}

#[diagnostic::do_not_recommend]
impl<E: From<LockError>> FromLostLock for E {
    fn from_lost_lock(error: LockError) -> Self {
        error.into()
    }
}

/// A return type that can say that nothing was done, as `skip_if_locked` needs it.
#[diagnostic::on_unimplemented(
    message = "`skip_if_locked` cannot return \"nothing was done\" through the return type `{Self}`",
    label = "expected `Result<Option<_>, _>`, or `Option<_>` together with `or_else`",
    note = "return `Ok(Some(value))` from the body, and the function returns `Ok(None)` when the lock is held elsewhere"
)]
pub trait SkipIfLocked {
    /// The value to return when the lock is held elsewhere.
    fn skipped() -> Self;
}

impl<T> SkipIfLocked for Option<T> {
    fn skipped() -> Self {
        None
    }
}

impl<T, E> SkipIfLocked for Result<Option<T>, E> {
    fn skipped() -> Self {
        Ok(None)
    }
}

/// Calls an `or_else` closure. By its bound the closure's parameter needs no type.
pub fn or_else<R, F: FnOnce(LockError) -> R>(error: LockError, handle: F) -> R {
    handle(error)
}
