//! Opening an account, and logging in: what the API and the page both do.

use std::net::IpAddr;

use crate::app::AppState;
use crate::auth::{HashError, Token};
use crate::domain::{Email, IdempotencyKey, NetworkMark, Password, Role, User, UserId};
use crate::error::{ApiError, Conflict, Write};
use crate::limits::Attempt;

/// The number of networks that are known to an account. The oldest is forgotten first.
const MOST_NETWORKS: usize = 8;

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
    register_once(state, address, email, password, None).await
}

/// Opens an account for a guest; or returns the one that the same request with the same key has
/// opened.
///
/// # Errors
/// Those of [`register`]; [`ApiError::KeyReused`] if the key was used with another password.
///
/// # Cancel safety
/// That of [`register`].
pub async fn register_once(
    state: &AppState,
    address: IpAddr,
    email: Email,
    password: Password,
    key: Option<&IdempotencyKey>,
) -> Result<User, ApiError> {
    state.limits.register(address)?;
    let id = key.map_or_else(UserId::random, |key| key.user(&email));
    let password_hash = state.passwords.hash(password.clone()).await?;
    // Otherwise strangers could keep the owner out before the first login.
    let networks = vec![state.networks.mark(id, address)];
    let user = User { id, email, password_hash, role: Role::Guest, networks };
    match state.repository.insert_user(&user).await {
        Ok(true) => Ok(user),
        Ok(false) if key.is_some() => opened_before(state, address, user, password).await,
        Ok(false) => Err(ApiError::Conflict(Conflict::UserExists)),
        Err(error) => {
            tracing::warn!(error = ?error.to_string(), "an account may have been opened or not");
            Err(ApiError::OutcomeOpen(Write::Account { keyed: key.is_some() }))
        }
    }
}

/// The account with this id and address, if it was opened by the same request: with the same key,
/// which is in the id, and with this password.
async fn opened_before(
    state: &AppState,
    address: IpAddr,
    asked: User,
    password: Password,
) -> Result<User, ApiError> {
    let found = state.repository.user_by_email(&asked.email).await?;
    let Some(found) = found.filter(|found| found.id == asked.id) else {
        return Err(ApiError::Conflict(Conflict::UserExists));
    };
    // A person who knows the key can try passwords here, so it counts as a login.
    let attempt = state.limits.login(address, &asked.email)?;
    if !state.passwords.verify(password, Some(found.password_hash.clone())).await? {
        return Err(ApiError::KeyReused);
    }
    attempt.forgive();
    Ok(found)
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
/// Dropped, it counts as a failed one.
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
    let attempt = state.limits.login(address, &email);
    let user = match state.repository.user_by_email(&email).await {
        Ok(user) => user,
        Err(error) => {
            // Nothing was compared.
            attempt.into_iter().for_each(Attempt::forgive);
            return Err(error.into());
        }
    };
    let mark = |user: &User| state.networks.mark(user.id, address);
    let known = user.as_ref().is_some_and(|user| user.networks.contains(&mark(user)));
    let attempt = match attempt {
        Err(_) if known => state.limits.login_from_known(address, &email)?,
        attempt => attempt?,
    };
    let hash = user.as_ref().map(|user| user.password_hash.clone());
    let right = match state.passwords.verify(password, hash).await {
        Ok(right) => right,
        Err(error) => {
            attempt.forgive();
            return Err(error.into());
        }
    };
    let user = user.filter(|_| right).ok_or(ApiError::WrongCredentials)?;
    attempt.forgive();
    if !known {
        remember(state, &user, mark(&user)).await;
    }
    state.tokens.issue(user.id, user.role).map_err(|error| {
        tracing::error!(%error, "a token cannot be signed");
        ApiError::Internal
    })
}

/// Notes that a user has logged in from a network. Two at once may note only one of theirs, which is
/// made up for by the next login from the other.
async fn remember(state: &AppState, user: &User, mark: NetworkMark) {
    let mut networks = user.networks.clone();
    networks.push(mark);
    let surplus = networks.len().saturating_sub(MOST_NETWORKS);
    networks.drain(..surplus);
    if let Err(error) = state.repository.set_networks(user.id, &networks).await {
        tracing::warn!(error = ?error.to_string(), "a login is not noted");
    }
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
