use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::{HeaderMap, header, request::Parts};
use time::OffsetDateTime;

use crate::app::AppState;
use crate::domain::{Role, UserId};
use crate::error::ApiError;

/// Who asks, as a valid token says. A handler that takes one as an argument answers 401 to all
/// others.
///
/// It is taken from `Authorization: Bearer` alone, and never from a cookie: what a browser adds by
/// itself would let other sites' pages ask in its user's name. The page has its own way in, and
/// verifies the same tokens ([`Tokens::verify`](super::Tokens::verify)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub user: UserId,
    /// What the user may do.
    pub role: Role,
    /// When the token ends.
    pub expires: OffsetDateTime,
}

impl FromRequestParts<AppState> for Identity {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let token = bearer(&parts.headers).ok_or(ApiError::Unauthenticated)?;
        state.tokens.verify(token).map_err(|_| ApiError::Unauthenticated)
    }
}

/// The token of the one `Authorization` header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(header), None) = (all.next(), all.next()) else { return None };
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then_some(token)
}

impl OptionalFromRequestParts<AppState> for Identity {
    type Rejection = ApiError;

    /// Nobody where there is no `Authorization` at all; a token that is not valid is still a 401.
    async fn from_request_parts(
        parts: &mut Parts,
        state: &AppState,
    ) -> Result<Option<Self>, ApiError> {
        if !parts.headers.contains_key(header::AUTHORIZATION) {
            return Ok(None);
        }
        <Self as FromRequestParts<AppState>>::from_request_parts(parts, state).await.map(Some)
    }
}
