//! What all pages have in common.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use cookie::Cookie;
use maud::{DOCTYPE, Markup, html};

use super::assets::{ICON, SCRIPT, STYLE};
use super::cookies;
use super::destination::Destination;
use super::flash::Flash;
use super::visitor::Visitor;
use crate::domain::Email;

/// No script, style or anything else but our own files; forms and streams go to us alone, and no
/// other page may show ours inside of it.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'";

/// A page.
pub(super) struct Page<'a> {
    /// What it is called in tabs and bookmarks.
    pub(super) title: &'a str,
    /// Who looks at it.
    pub(super) visitor: &'a Visitor,
    /// The user's address, if it is known.
    pub(super) email: Option<&'a Email>,
    /// Where to come back to after a login.
    pub(super) here: Destination,
    /// What is in `main`.
    pub(super) content: Markup,
}

impl Page<'_> {
    /// Its HTML.
    pub(super) fn html(&self) -> String {
        let Self { title, visitor, email, here, content } = self;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) " – Booking" }
                    link rel="stylesheet" href=(STYLE.path());
                    link rel="icon" type="image/svg+xml" href=(ICON.path());
                    script src=(SCRIPT.path()) defer {}
                }
                body {
                    a.skip href="#main" { "Skip to the content" }
                    header.top {
                        a.brand href="/" { "Booking" }
                        @if visitor.identity.is_some() {
                            p.who { @if let Some(email) = email { (email) } }
                        }
                        nav aria-label="Account" {
                            @if visitor.identity.is_some() {
                                a href="/page/bookings" { "Your bookings" }
                                form method="post" action="/page/logout" {
                                    (form_fields(visitor, *here))
                                    button.quiet { "Log out" }
                                }
                            } @else {
                                a href=(here.login()) { "Log in" }
                                a href=(here.register()) { "Register" }
                            }
                        }
                    }
                    main #main tabindex="-1" { (content) }
                    footer { p.hint { "For programs: " a href="/docs" { "the API" } } }
                }
            }
        };
        page.into_string()
    }

    /// An answer.
    pub(super) fn respond(&self, status: StatusCode, cookies: &[Cookie<'_>]) -> Response {
        let html = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
        let mut response = (status, html, self.html()).into_response();
        // Each page says what it is to say once, and no later one says it again.
        if self.visitor.flash.is_some() {
            cookies::set(response.headers_mut(), &cookies::removal(cookies::FLASH));
        }
        cookies.iter().for_each(|cookie| cookies::set(response.headers_mut(), cookie));
        response
    }
}

/// What a form of this visitor needs: the token, and the page that a login leads to if the visitor's
/// has ended.
pub(super) fn form_fields(visitor: &Visitor, next: Destination) -> Markup {
    html! {
        input type="hidden" name="csrf" value=(visitor.csrf().unwrap_or_default());
        input type="hidden" name="next" value=(next);
    }
}

/// Something that happened. It has the focus, so that a screen reader begins with it.
pub(super) fn notice(text: &str, more: Option<Markup>) -> Markup {
    html! {
        div.notice tabindex="-1" autofocus role="group" aria-label="Message" {
            p { (text) @if let Some(more) = more { " " (more) } }
        }
    }
}

/// Something that failed. As above.
pub(super) fn alert(title: &str, more: &Markup) -> Markup {
    html! {
        div.problem tabindex="-1" autofocus role="group" aria-labelledby="problem" {
            h2 #problem { (title) }
            (more)
        }
    }
}

/// On to another page, which is asked for with GET, and shows `flash`.
pub(super) fn redirect(to: Destination, flash: Option<Flash>, cookies: &[Cookie<'_>]) -> Response {
    redirect_to(&to.to_string(), flash, cookies)
}

/// As above, to a path of ours that no destination is.
pub(super) fn redirect_to(path: &str, flash: Option<Flash>, cookies: &[Cookie<'_>]) -> Response {
    let mut response = Redirect::to(path).into_response();
    let headers = response.headers_mut();
    cookies.iter().for_each(|cookie| cookies::set(headers, cookie));
    if let Some(flash) = flash {
        cookies::set(headers, &cookies::flash(flash));
    }
    response
}

/// Headers of every answer of the page.
pub(super) async fn secure(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers
        .insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY));
    // With `no-referrer`, browsers send `Origin: null` with our own forms.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}
