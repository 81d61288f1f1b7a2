//! Opening an account, and logging in: what the API and the page both do.

use std::net::IpAddr;

use crate::app::AppState;
use crate::auth::{HashError, Token};
use crate::domain::{Email, Password, Role, User, UserId};
use crate::error::{ApiError, Conflict};

/// Opens an account for a guest.
///
/// # Errors
/// [`ApiError::TooMany`]; [`ApiError::Conflict`] if the address has one, which tells whoever asks
/// that it does: so it is limited how often one may; [`ApiError::Unavailable`],
/// [`ApiError::OutcomeOpen`].
///
/// # Cancel safety
/// Dropped, it may have opened the account.
pub async fn register(
    state: &AppState,
    address: IpAddr,
    email: Email,
    password: Password,
) -> Result<User, ApiError> {
    state.limits.register(address)?;
    let password_hash = state.passwords.hash(password).await?;
    let user = User { id: UserId::random(), email, password_hash, role: Role::Guest };
    match state.repository.insert_user(&user).await {
        Ok(true) => Ok(user),
        Ok(false) => Err(ApiError::Conflict(Conflict::UserExists)),
        Err(error) => {
            tracing::warn!(error = ?error.to_string(), "an account may have been opened or not");
            Err(ApiError::OutcomeOpen)
        }
    }
}

/// Logs in, and returns a token.
///
/// Whether there is no such account or the password is wrong, the answer is the same, and the work:
/// one password is hashed.
///
/// # Errors
/// [`ApiError::TooMany`]; [`ApiError::WrongCredentials`]; [`ApiError::Unavailable`].
///
/// # Cancel safety
/// Nothing is left behind.
pub async fn login(
    state: &AppState,
    address: IpAddr,
    email: &str,
    password: Password,
) -> Result<Token, ApiError> {
    // No account has an address or a password of another shape.
    let Ok(email) = Email::parse(email) else { return Err(ApiError::WrongCredentials) };
    if password.is_too_long() {
        return Err(ApiError::WrongCredentials);
    }
    state.limits.login(address, &email)?;
    let user = state.repository.user_by_email(&email).await?;
    let hash = user.as_ref().map(|user| user.password_hash.clone());
    let right = state.passwords.verify(password, hash).await?;
    let user = user.filter(|_| right).ok_or(ApiError::WrongCredentials)?;
    state.tokens.issue(user.id, user.role).map_err(|error| {
        tracing::error!(%error, "a token cannot be signed");
        ApiError::Internal
    })
}

impl From<HashError> for ApiError {
    fn from(error: HashError) -> Self {
        match error {
            HashError::Busy => Self::Unavailable,
            error => {
                tracing::error!(%error, "a password cannot be hashed");
                Self::Internal
            }
        }
    }
}
