//! What can go wrong with a flight.

use crate::error::LockError;

/// Why a caller of a single flight has no value.
///
/// ```
/// use cache_lock::{LockError, SingleFlightError};
///
/// #[derive(Debug)]
/// enum RatesError {
///     Lock(LockError),
///     Service(String),
/// }
///
/// impl From<LockError> for RatesError {
///     fn from(error: LockError) -> Self {
///         Self::Lock(error)
///     }
/// }
///
/// // An error type that is made from a `LockError`, as the attribute has it, stands for both:
/// fn of(error: SingleFlightError<RatesError>) -> RatesError {
///     error.into_inner()
/// }
/// ```
#[derive(Clone, Debug, thiserror::Error)]
pub enum SingleFlightError<E> {
    /// There was no lock, or it was lost; or others computed for all of the timeout
    /// ([`LockError::Contended`]).
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The computation failed: this caller's own or, where errors are shared, the one that it waited
    /// for.
    #[error(transparent)]
    Compute(E),
}

impl<E: From<LockError>> SingleFlightError<E> {
    /// The error of the computation, or the one of the lock as such an error.
    #[must_use]
    pub fn into_inner(self) -> E {
        match self {
            Self::Lock(error) => error.into(),
            Self::Compute(error) => error,
        }
    }
}
