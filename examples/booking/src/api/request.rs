//! What handlers take of a request's head, refused in the service's own words.

use std::collections::HashMap;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::{HeaderName, request::Parts};

use crate::app::AppState;
use crate::domain::{self, SlotId};
use crate::error::ApiError;

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The id of a slot in the path.
pub(super) struct SlotPath(pub(super) SlotId);

impl FromRequestParts<AppState> for SlotPath {
    type Rejection = ApiError;

    /// What is no id is the id of no slot.
    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let id = path.ok().and_then(|Path(text)| SlotId::parse(&text));
        id.map(Self).ok_or(ApiError::NotFound("There is no such slot."))
    }
}

/// The parameters of the query, each once.
pub(super) struct Parameters(pub(super) HashMap<String, String>);

impl FromRequestParts<AppState> for Parameters {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let Ok(Query(pairs)) =
            Query::<Vec<(String, String)>>::from_request_parts(parts, state).await
        else {
            return Err(ApiError::Malformed("The query is not UTF-8.".into()));
        };
        let mut parameters = HashMap::new();
        for (name, value) in pairs {
            if parameters.insert(name, value).is_some() {
                return Err(ApiError::Malformed("A parameter is there twice.".into()));
            }
        }
        Ok(Self(parameters))
    }
}

/// What the client calls the request, if it does.
pub(super) struct IdempotencyKey(pub(super) Option<domain::IdempotencyKey>);

impl FromRequestParts<AppState> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        let mut all = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(value) = all.next() else { return Ok(Self(None)) };
        let key = value.to_str().ok().and_then(domain::IdempotencyKey::parse);
        // A client that relies on a key must not be served without it.
        match key.filter(|_| all.next().is_none()) {
            Some(key) => Ok(Self(Some(key))),
            None => Err(ApiError::Malformed(
                "`Idempotency-Key` must be one string of 1 to 128 visible characters, such as a \
                 UUID in quotation marks."
                    .into(),
            )),
        }
    }
}
