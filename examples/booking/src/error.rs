//! What a request can fail with, and how it is told: problem details, RFC 9457.

use std::borrow::Cow;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::FieldError;
use crate::repository::RepositoryError;

/// Why a request was not served.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ApiError {
    /// 400: fields are wrong.
    Invalid(Vec<FieldError>),
    /// 400: the request cannot be read at all.
    Malformed(Cow<'static, str>),
    /// 401: there is no token, or it is not valid (any more).
    Unauthenticated,
    /// 401: the address or the password is wrong. Which of them is not told.
    WrongCredentials,
    /// 403: this user may not do that.
    Forbidden(&'static str),
    /// 404: there is no such thing.
    NotFound(&'static str),
    /// 405: there is such a path, but not this method.
    MethodNotAllowed,
    /// 408: the request did not arrive in time.
    Slow,
    /// 409: it is not as the request takes it to be.
    Conflict(Conflict),
    /// 413: the body is too large.
    TooLarge,
    /// 415: the body is not `application/json`.
    NotJson,
    /// 422: the `Idempotency-Key` is that of another request.
    KeyReused,
    /// 423: somebody is booking this slot right now.
    Locked,
    /// 423: this user has another booking under way.
    Busy,
    /// 429: too many attempts; try again after this time.
    TooMany(Duration),
    /// 503: a server that is needed cannot be used, and nothing was done.
    Unavailable,
    /// 503: as above, but this may have been written.
    OutcomeOpen(Write),
    /// 500: a fault of this program.
    Internal,
}

/// The kinds of conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conflict {
    /// Somebody else has the slot.
    AlreadyBooked,
    /// There is an account with this address.
    UserExists,
    /// The user has as many slots of that day as one may have.
    LimitReached,
    /// The slot has begun.
    Past,
}

/// What was being written when the outcome became open. What to do then depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Write {
    /// A new account; `keyed` by an `Idempotency-Key`.
    Account {
        /// Whether there was a key.
        keyed: bool,
    },
    /// A new slot; `keyed` by an `Idempotency-Key`.
    Slot {
        /// Whether there was a key.
        keyed: bool,
    },
    /// A booking.
    Booking,
    /// A cancellation.
    Cancellation,
    /// Any of them, for the page that explains the kinds of problem.
    Any,
}

impl Write {
    /// What may have happened, and what to do, for a program that sends requests.
    fn advice(self) -> &'static str {
        match self {
            Self::Account { keyed: true } => {
                "The account may have been opened. Send the request again with the same \
                 `Idempotency-Key`: a 201 says that it is there."
            }
            Self::Account { keyed: false } => {
                "The account may have been opened. Log in; if that fails, send the request again."
            }
            Self::Slot { keyed: true } => {
                "The slot may have been created. Send the request again with the same \
                 `Idempotency-Key`: it creates one slot, however often it is sent."
            }
            Self::Slot { keyed: false } => {
                "The slot may have been created. List the slots of its day before you send the \
                 request again, or there may be two. With an `Idempotency-Key`, a request can be \
                 sent again as it is."
            }
            Self::Booking => {
                "The slot may be yours. Send the request again: it books the slot once, and a 200 \
                 says that it was yours already. `/me/bookings` shows it, too."
            }
            Self::Cancellation => {
                "The booking may have been cancelled. Send the request again: a 200 says that it is \
                 cancelled, a 404 or a 403 that it was."
            }
            Self::Any => "The detail says what may have happened, and what to do.",
        }
    }

    /// The same for a user of the page.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Account { .. } => "Try to log in. If that fails, register again.",
            Self::Booking => "Look at your bookings, or book it again: it is booked once at most.",
            Self::Cancellation => "Look at your bookings: if it is still there, cancel it again.",
            Self::Slot { .. } | Self::Any => "Look whether it is there before you do it again.",
        }
    }
}

/// A problem's body, `application/problem+json`.
#[derive(Debug, Serialize, ToSchema)]
pub struct Problem {
    /// Names the kind of problem, for programs: a URI relative to the service.
    #[serde(rename = "type")]
    #[schema(example = "/docs#already-booked")]
    pub kind: String,
    /// The kind in words.
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What happened, and what to do.
    pub detail: String,
    /// The fields that were refused, with status 400.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
}

/// A field that was refused.
#[derive(Debug, Serialize, ToSchema)]
pub struct FieldProblem {
    /// Its name.
    pub field: &'static str,
    /// What it must be.
    pub message: String,
}

/// How long somebody who met a 423 or a 503 is asked to wait.
const PAUSE: Duration = Duration::from_secs(1);

impl ApiError {
    /// One error of each kind, for the page that explains them.
    #[must_use]
    pub fn one_of_each() -> Vec<Self> {
        let conflicts =
            [Conflict::AlreadyBooked, Conflict::UserExists, Conflict::LimitReached, Conflict::Past];
        let mut all = vec![
            Self::Invalid(Vec::new()),
            Self::Malformed("The detail says where it is wrong.".into()),
            Self::Unauthenticated,
            Self::WrongCredentials,
            Self::Forbidden("The detail says what only others may do."),
            Self::NotFound("The detail says what is not there."),
            Self::MethodNotAllowed,
            Self::Slow,
            Self::TooLarge,
            Self::NotJson,
            Self::KeyReused,
            Self::Locked,
            Self::Busy,
            Self::TooMany(PAUSE),
            Self::Unavailable,
            Self::OutcomeOpen(Write::Any),
            Self::Internal,
        ];
        all.extend(conflicts.map(Self::Conflict));
        all
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Invalid(_) | Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Unauthenticated | Self::WrongCredentials => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Locked | Self::Busy => StatusCode::LOCKED,
            Self::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable | Self::OutcomeOpen(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The kind for programs, and in words.
    #[must_use]
    pub fn kind(&self) -> (&'static str, &'static str) {
        match self {
            Self::Invalid(_) => ("invalid", "Fields are not valid"),
            Self::Malformed(_) => ("malformed", "The request cannot be read"),
            Self::Unauthenticated => ("unauthenticated", "Log in first"),
            Self::WrongCredentials => ("wrong-credentials", "The login failed"),
            Self::Forbidden(_) => ("forbidden", "Not allowed"),
            Self::NotFound(_) => ("not-found", "Not found"),
            Self::MethodNotAllowed => ("method-not-allowed", "Method not allowed"),
            Self::Slow => ("slow", "The request took too long to arrive"),
            Self::Conflict(Conflict::AlreadyBooked) => ("already-booked", "Already booked"),
            Self::Conflict(Conflict::UserExists) => ("user-exists", "The account exists"),
            Self::Conflict(Conflict::LimitReached) => ("limit-reached", "No more slots that day"),
            Self::Conflict(Conflict::Past) => ("past", "The slot has begun"),
            Self::TooLarge => ("too-large", "The body is too large"),
            Self::NotJson => ("not-json", "The body is not JSON"),
            Self::KeyReused => ("key-reused", "The key is that of another request"),
            Self::Locked => ("locked", "Somebody is booking this slot right now"),
            Self::Busy => ("busy", "You have another booking under way"),
            Self::TooMany(_) => ("too-many", "Too many attempts"),
            Self::Unavailable => ("unavailable", "The service is not available"),
            Self::OutcomeOpen(_) => ("outcome-open", "The outcome is not known"),
            Self::Internal => ("internal", "The service failed"),
        }
    }

    /// What happened, and what to do, in a sentence that can be shown to a user.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::Invalid(_) => "Correct the fields that are named in `errors`.".to_owned(),
            Self::Malformed(what) => what.clone().into_owned(),
            Self::Unauthenticated => {
                "This needs a valid token: log in, and send `Authorization: Bearer ..`.".to_owned()
            }
            Self::WrongCredentials => "The email address or the password is wrong.".to_owned(),
            Self::Forbidden(what) | Self::NotFound(what) => (*what).to_owned(),
            Self::MethodNotAllowed => "This path does not have this method.".to_owned(),
            Self::Slow => "Send the whole request at once.".to_owned(),
            Self::Conflict(Conflict::AlreadyBooked) => "Somebody else has this slot.".to_owned(),
            Self::Conflict(Conflict::UserExists) => {
                "There is an account with this email address: log in.".to_owned()
            }
            Self::Conflict(Conflict::LimitReached) => {
                "You have as many slots on that day as one may have: cancel one first.".to_owned()
            }
            Self::Conflict(Conflict::Past) => "A slot that has begun is left as it is.".to_owned(),
            Self::TooLarge => "A request's body has 16 KiB at most.".to_owned(),
            Self::NotJson => "Send `Content-Type: application/json`.".to_owned(),
            Self::KeyReused => {
                "Nothing was changed. Send a new `Idempotency-Key` with each new request, and the \
                 same one only with the same fields."
                    .to_owned()
            }
            Self::Locked => "Try again in a moment: it may still be free then.".to_owned(),
            Self::Busy => "Wait for its answer, then try again.".to_owned(),
            Self::TooMany(wait) => format!("Try again in {} s.", seconds(*wait)),
            Self::Unavailable => "Nothing was changed. Try again in a moment.".to_owned(),
            Self::OutcomeOpen(write) => write.advice().to_owned(),
            Self::Internal => {
                "The fault is logged under this response's `x-request-id`.".to_owned()
            }
        }
    }

    /// The fields that were refused.
    #[must_use]
    pub fn fields(&self) -> &[FieldError] {
        if let Self::Invalid(fields) = self { fields } else { &[] }
    }

    /// When it is worth trying again.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooMany(wait) => Some(*wait),
            Self::Locked | Self::Busy | Self::Unavailable | Self::OutcomeOpen(_) => Some(PAUSE),
            _ => None,
        }
    }
}

/// Whole seconds, rounded up, one at least: `Retry-After: 0` would ask for a storm.
fn seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}

impl From<&ApiError> for Problem {
    fn from(error: &ApiError) -> Self {
        let (kind, title) = error.kind();
        let errors = error.fields().iter();
        Self {
            kind: format!("/docs#{kind}"),
            title,
            status: error.status().as_u16(),
            detail: error.detail(),
            errors: errors
                .map(|error| FieldProblem { field: error.field, message: error.message.clone() })
                .collect(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status(), Json(Problem::from(&self))).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(wait) = self.retry_after() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds(wait)));
        }
        if matches!(self, Self::Unauthenticated) {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<RepositoryError> for ApiError {
    /// For what can be repeated without harm; where a write may have happened that matters, the
    /// caller says [`OutcomeOpen`](Self::OutcomeOpen).
    fn from(error: RepositoryError) -> Self {
        match &error {
            RepositoryError::Mongo(_) | RepositoryError::Silent => {
                tracing::warn!(error = ?error.to_string(), "the database failed");
                Self::Unavailable
            }
            RepositoryError::Corrupt { .. } => {
                tracing::error!(error = ?error.to_string(), "the database has an odd document");
                Self::Internal
            }
        }
    }
}
