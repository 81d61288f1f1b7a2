//! A part of a path that names something.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

/// The text of a path's one parameter. If that is no text, as with `/page/days/%ff`, it is empty,
/// which names nothing: so the visitor gets the page that says so.
#[derive(Debug)]
pub(super) struct Segment(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let text = Path::<String>::from_request_parts(parts, state).await;
        Ok(Self(text.map_or_else(|_| String::new(), |Path(text)| text)))
    }
}
