//! The page's cookies.
//!
//! Each is named `__Host-`: a browser takes such a one only over a connection it trusts, for this
//! host alone and all of its paths, so that no neighbouring host can plant one. Browsers of the
//! Chromium and Firefox families trust `http://localhost` and `http://127.0.0.1` too.

use axum::http::{HeaderMap, HeaderValue, header};
use cookie::{Cookie, CookieBuilder, SameSite};
use time::{Duration, OffsetDateTime};

use super::flash::Flash;
use crate::auth::Token;

/// The API's token.
pub(super) const SESSION: &str = "__Host-session";
/// What the forms of somebody who is not logged in are bound to.
pub(super) const VISITOR: &str = "__Host-visitor";
/// What the next page says once.
pub(super) const FLASH: &str = "__Host-flash";

/// No script sees it, and requests from other sites do not carry it, but for a plain link to us:
/// who follows one is still logged in.
fn build(name: &'static str, value: String) -> CookieBuilder<'static> {
    Cookie::build((name, value)).path("/").secure(true).http_only(true).same_site(SameSite::Lax)
}

/// A login, for as long as its token lasts from `now` on.
pub(super) fn session(token: &Token, now: OffsetDateTime) -> Cookie<'static> {
    let rest = (token.expires - now).max(Duration::ZERO);
    build(SESSION, token.text.clone()).max_age(Duration::seconds(rest.whole_seconds())).build()
}

/// Until the browser is closed.
pub(super) fn visitor(secret: &str) -> Cookie<'static> {
    build(VISITOR, secret.to_owned()).build()
}

/// For the page that a redirect leads to.
pub(super) fn flash(flash: Flash) -> Cookie<'static> {
    build(FLASH, flash.to_string()).max_age(Duration::minutes(1)).build()
}

/// Takes a cookie away.
pub(super) fn removal(name: &'static str) -> Cookie<'static> {
    build(name, String::new()).max_age(Duration::ZERO).build()
}

/// The value of the first cookie of this name.
pub(super) fn get(headers: &HeaderMap, name: &str) -> Option<String> {
    let headers = headers.get_all(header::COOKIE).iter().filter_map(|header| header.to_str().ok());
    let mut cookies = headers.flat_map(Cookie::split_parse).filter_map(Result::ok);
    cookies.find(|cookie| cookie.name() == name).map(|cookie| cookie.value().to_owned())
}

/// Adds a cookie to an answer.
pub(super) fn set(headers: &mut HeaderMap, cookie: &Cookie<'_>) {
    if let Ok(value) = HeaderValue::from_str(&cookie.to_string()) {
        headers.append(header::SET_COOKIE, value);
    }
}
