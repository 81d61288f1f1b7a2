//! Errors, for people.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use maud::html;

use super::destination::Destination;
use super::layout::{Page, alert};
use super::visitor::Visitor;
use crate::error::{ApiError, Conflict};

/// What a form is called that was made for another session, or for none.
pub(super) const OUTDATED: &str = "This form is out of date";

/// What happened, and what to do.
pub(super) fn words(error: &ApiError) -> (&'static str, String) {
    let (_, title) = error.kind();
    match error {
        ApiError::Locked => {
            ("Somebody is booking this slot right now.", "Try again in a moment.".to_owned())
        }
        ApiError::Conflict(Conflict::AlreadyBooked) => (
            "This slot is taken.",
            "Somebody else was faster. Is there another for you?".to_owned(),
        ),
        ApiError::Invalid(_) => ("Something has to be corrected", String::new()),
        ApiError::TooMany(wait) => (title, format!("Try again {}.", from_now(*wait))),
        ApiError::OutcomeOpen(write) => {
            ("It is not known whether that worked.", write.words().to_owned())
        }
        ApiError::Internal => (title, "The fault is logged. Try again later.".to_owned()),
        error => (title, error.detail()),
    }
}

fn from_now(wait: Duration) -> String {
    match wait.as_secs() + u64::from(wait.subsec_nanos() > 0) {
        0 | 1 => "in a second".to_owned(),
        seconds @ 2..=90 => format!("in {seconds} seconds"),
        seconds => format!("in {} minutes", seconds.div_ceil(60)),
    }
}

/// Adds when it is worth trying again.
pub(super) fn retry_after(mut response: Response, error: &ApiError) -> Response {
    if let Some(wait) = error.retry_after() {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    }
    response
}

/// A page that has nothing but an error.
pub(super) fn page(visitor: &Visitor, error: &ApiError) -> Response {
    page_of(visitor, error, Destination::default())
}

/// As above, with the way back to a page of ours.
pub(super) fn page_of(visitor: &Visitor, error: &ApiError, here: Destination) -> Response {
    let (title, text) = words(error);
    retry_after(plain(visitor, error.status(), title, &text, here), error)
}

/// 403: the request was made by another site's page.
pub(super) fn foreign(visitor: &Visitor) -> Response {
    let text = "The request came from another site, so nothing was done.";
    plain(visitor, StatusCode::FORBIDDEN, "Not allowed", text, Destination::default())
}

/// 403: the form was made for an earlier login than the one that its sender has now.
pub(super) fn outdated(visitor: &Visitor, here: Destination) -> Response {
    let text = "You have logged in since it was opened, perhaps as somebody else. Nothing was \
        done: go back, and try again.";
    plain(visitor, StatusCode::FORBIDDEN, OUTDATED, text, here)
}

fn plain(
    visitor: &Visitor,
    status: StatusCode,
    title: &str,
    text: &str,
    here: Destination,
) -> Response {
    let back = if here == Destination::Bookings { "your bookings" } else { "the slots" };
    let content = html! {
        h1 { "That did not work" }
        (alert(title, &html! { p { (text) } }))
        // No later page says it.
        @if let Some(flash) = visitor.flash { p { (flash.text()) } }
        p { a href=(here) { "Back to " (back) } }
    };
    let title = format!("Error: {title}");
    Page { title: &title, visitor, email: None, here, content }.respond(status, &[])
}

#[cfg(test)]
mod tests {
    use super::{Duration, from_now};

    #[test]
    fn a_time_is_told_as_people_tell_it() {
        for (wait, text) in [
            (Duration::from_millis(1), "in a second"),
            (Duration::from_millis(1500), "in 2 seconds"),
            (Duration::from_secs(90), "in 90 seconds"),
            (Duration::from_secs(91), "in 2 minutes"),
            (Duration::from_secs(600), "in 10 minutes"),
        ] {
            assert_eq!(from_now(wait), text);
        }
    }
}
