use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header;
use serde_json::{Map, Value};

use crate::domain::{FieldError, FieldErrors};
use crate::error::ApiError;

/// The fields of a JSON object, each of which is a string. What is not a string, such as an object
/// with an operator of a database in it, never gets any further than here.
#[derive(Debug)]
pub(super) struct Fields {
    object: Map<String, Value>,
    pub(super) errors: FieldErrors,
}

impl Fields {
    /// A required field.
    pub(super) fn string(&mut self, name: &'static str) -> Option<String> {
        self.read(name, |text| Ok(text.to_owned()))
    }

    /// A required field, and what it must be.
    pub(super) fn read<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, FieldError>,
    ) -> Option<T> {
        let value = match self.object.remove(name) {
            Some(Value::String(text)) => parse(&text),
            Some(_) => Err(FieldError::new(name, "must be a string")),
            None => Err(FieldError::new(name, "is missing")),
        };
        self.errors.take(value)
    }

    /// All errors, unless there are none; then `value`.
    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, ApiError> {
        let errors = self.errors.into_vec();
        if !errors.is_empty() {
            return Err(ApiError::Invalid(errors));
        }
        if !self.object.is_empty() {
            return Err(ApiError::Malformed("The object has a field that is not known.".into()));
        }
        value.ok_or(ApiError::Internal)
    }
}

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
        // A form of another site can be sent without asking, but not as this type.
        if !kind.trim().eq_ignore_ascii_case("application/json") {
            return Err(ApiError::NotJson);
        }
        let body = Bytes::from_request(request, state).await;
        let body = body.map_err(|_| ApiError::Malformed("The body ended early.".into()))?;
        match serde_json::from_slice(&body) {
            Ok(Value::Object(object)) => Ok(Self { object, errors: FieldErrors::default() }),
            Ok(_) => Err(ApiError::Malformed("The body must be a JSON object.".into())),
            // Where it is wrong, but nothing of what it says.
            Err(error) => Err(ApiError::Malformed(
                format!(
                    "The body is not JSON: see line {}, column {}.",
                    error.line(),
                    error.column()
                )
                .into(),
            )),
        }
    }
}
