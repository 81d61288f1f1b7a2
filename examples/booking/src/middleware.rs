//! What stands around every route: bounds of size and time, headers, the access log, and errors of
//! the framework in the service's own words.

use std::any::Any;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;
use uuid::Uuid;

use crate::api::IDEMPOTENCY_KEY;
use crate::app::{AppState, Peer, Reserved};
use crate::error::{ApiError, Write};

/// The most bytes of a request's body.
pub const LARGEST_BODY: usize = 16 * 1024;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What may be asked when all places for connections are taken.
const ALWAYS_SERVED: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Refuses what needs no look at its body: a request to a full service, and one that does not say
/// for which host it is, or says so twice, which two servers in a row may read in two ways.
pub async fn admit(request: Request, next: Next) -> Response {
    let hosts = request.headers().get_all(header::HOST).iter().count();
    let needed = usize::from(request.version() >= Version::HTTP_11);
    if hosts < needed || hosts > 1 {
        return ApiError::Malformed("A request has one `Host`.".into()).into_response();
    }
    let reserved = request.extensions().get::<Reserved>().is_some();
    if reserved && !ALWAYS_SERVED.contains(&request.uri().path()) {
        return ApiError::Unavailable.into_response();
    }
    next.run(request).await
}

/// Reads the whole body before the request goes on, within bounds of size and time; so no handler
/// waits for a client.
pub async fn bound(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    // One that says so is not waited for.
    if body.size_hint().lower() > LARGEST_BODY as u64 {
        return ApiError::TooLarge.into_response();
    }
    let late = late(&parts);
    let read = Limited::new(body, LARGEST_BODY).collect();
    let body = match tokio::time::timeout(state.settings.body_timeout, read).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return ApiError::TooLarge.into_response();
        }
        Ok(Err(_)) => return ApiError::Malformed("The body ended early.".into()).into_response(),
        Err(_) => return ApiError::Slow.into_response(),
    };
    let response = next.run(Request::from_parts(parts, Body::from(body)));
    match tokio::time::timeout(state.settings.request_timeout, response).await {
        Ok(response) => response,
        // Every wait inside has a shorter bound of its own.
        Err(_) => late.into_response(),
    }
}

/// What a request is told that has run into its bound.
fn late(request: &Parts) -> ApiError {
    let keyed = request.headers.contains_key(IDEMPOTENCY_KEY);
    let route = request.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let write = match (&request.method, route) {
        (&Method::POST, "/register" | "/page/register") => Write::Account { keyed },
        (&Method::POST, "/slots") => Write::Slot { keyed },
        (&Method::POST, "/slots/{id}/book" | "/page/slots/{id}/book") => Write::Booking,
        (&Method::DELETE, "/slots/{id}/booking") => Write::Cancellation,
        (&Method::POST, "/page/slots/{id}/cancel") => Write::Cancellation,
        _ => return ApiError::Unavailable,
    };
    ApiError::OutcomeOpen(write)
}

/// Headers that say what a browser may do with the answer. A route that knows better sets its own.
pub async fn secure(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Names the request, counts it, and writes its line of the access log. The line has nothing that a
/// client chose but the method and the path, which is escaped; no query, no header.
pub async fn observe(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let id = Uuid::now_v7().to_string();
    let method = method_name(request.method());
    let path = request.uri().path().to_owned();
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;

    let status = response.status().as_u16();
    let took = began.elapsed();
    let route = matched.as_ref().map_or("(none)", MatchedPath::as_str);
    state.metrics.request(method, route, status, took);
    tracing::info!(
        target: "booking::access",
        method,
        path,
        status,
        took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        peer = peer.map(tracing::field::display),
        request = id,
    );
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// A method of one's own invention would be a label of one's own invention.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}

/// 404, for paths that no route has.
pub async fn not_found() -> ApiError {
    ApiError::NotFound("There is no such path.")
}

/// 405.
pub async fn method_not_allowed() -> ApiError {
    ApiError::MethodNotAllowed
}

/// 500. What the panic said is in the log, not in the answer.
pub fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("(no text)");
    tracing::error!(panic = ?text, "a handler panicked");
    ApiError::Internal.into_response()
}
