//! Registering, logging in and out, by forms.

use std::collections::HashMap;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::destination::Destination;
use super::flash::Flash;
use super::layout::{self, Page, alert, form_fields, notice};
use super::posted::{Posted, Refused};
use super::visitor::Visitor;
use super::{cookies, problem};
use crate::accounts;
use crate::app::AppState;
use crate::auth::Token;
use crate::client_address::ClientAddress;
use crate::domain::{Email, FieldError, FieldErrors, Password};
use crate::error::{ApiError, Conflict};

/// The two forms, which are nearly the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Login,
    Register,
}

impl Kind {
    fn title(self) -> &'static str {
        match self {
            Self::Login => "Log in",
            Self::Register => "Register",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Login => "/page/login",
            Self::Register => "/page/register",
        }
    }
}

/// What a form shows.
#[derive(Default)]
struct Shown {
    next: Destination,
    email: String,
    error: Option<ApiError>,
}

type Parameters = Query<HashMap<String, String>>;

/// The form of a login.
pub(super) async fn login_form(parameters: Parameters, visitor: Visitor) -> Response {
    empty(Kind::Login, &parameters, visitor)
}

/// The form of a registration.
pub(super) async fn register_form(parameters: Parameters, visitor: Visitor) -> Response {
    empty(Kind::Register, &parameters, visitor)
}

/// Logs in.
pub(super) async fn login(
    State(state): State<AppState>,
    ClientAddress(address): ClientAddress,
    posted: Result<Posted, Refused>,
) -> Response {
    let posted = match posted {
        Ok(posted) => posted,
        Err(refused) => return not_read(Kind::Login, refused),
    };
    let next = posted.destination();
    let email = posted.field("email").trim();
    let outcome = match missing(&[("email", email), ("password", posted.field("password"))]) {
        Some(error) => Err(error),
        None => {
            let password = Password::attempt(posted.field("password").to_owned());
            accounts::login(&state, address, email, password).await
        }
    };
    match outcome {
        Ok(token) => logged_in(&state, &token, next, None),
        Err(error) => refused(Kind::Login, &posted, next, error),
    }
}

/// Opens an account, and logs its owner in.
pub(super) async fn register(
    State(state): State<AppState>,
    ClientAddress(address): ClientAddress,
    posted: Result<Posted, Refused>,
) -> Response {
    let posted = match posted {
        Ok(posted) => posted,
        Err(refused) => return not_read(Kind::Register, refused),
    };
    let next = posted.destination();
    let mut errors = FieldErrors::default();
    let email = errors.take(Email::parse(posted.field("email").trim()));
    let password =
        errors.take(Password::choose(posted.field("password").to_owned(), email.as_ref()));
    let outcome = match email.zip(password) {
        Some((email, password)) => accounts::register(&state, address, email, password).await,
        None => Err(ApiError::Invalid(errors.into_vec())),
    };
    let token = outcome.and_then(|user| {
        state.tokens.issue(user.id, user.role).map_err(|error| {
            tracing::error!(%error, "a token cannot be signed");
            ApiError::Internal
        })
    });
    match token {
        Ok(token) => logged_in(&state, &token, next, Some(Flash::Welcome)),
        Err(error) => refused(Kind::Register, &posted, next, error),
    }
}

/// Logs out: the browser forgets the token.
pub(super) async fn logout(_posted: Posted) -> Response {
    let session = cookies::removal(cookies::SESSION);
    layout::redirect(Destination::default(), Some(Flash::LoggedOut), &[session])
}

fn missing(fields: &[(&'static str, &str)]) -> Option<ApiError> {
    let missing = fields.iter().filter(|(_, text)| text.is_empty());
    let errors: Vec<_> = missing.map(|(name, _)| FieldError::new(name, "is missing")).collect();
    (!errors.is_empty()).then_some(ApiError::Invalid(errors))
}

fn logged_in(state: &AppState, token: &Token, next: Destination, flash: Option<Flash>) -> Response {
    let session = cookies::session(token, state.settings.clock.now());
    let cookies = [session, cookies::removal(cookies::VISITOR)];
    layout::redirect(next, flash, &cookies)
}

fn empty(kind: Kind, parameters: &Parameters, visitor: Visitor) -> Response {
    let next = Destination::parse(parameters.get("next").map_or("", String::as_str));
    form(kind, visitor, &Shown { next, ..Shown::default() })
}

fn refused(kind: Kind, posted: &Posted, next: Destination, error: ApiError) -> Response {
    let email = posted.field("email").to_owned();
    let shown = Shown { next, email, error: Some(error) };
    filled(kind, &posted.visitor, &shown, &[])
}

/// A form whose cookie has gone meanwhile, or was of a login that has ended, is shown again.
fn not_read(kind: Kind, refused: Refused) -> Response {
    match refused {
        Refused::Outdated(visitor, fields) if visitor.identity.is_none() => {
            let error = Some(ApiError::Forbidden(
                "Nothing was done. Fill it in again. If this is said once more, let your browser \
                 keep cookies.",
            ));
            let email = fields.text("email").to_owned();
            form(kind, visitor, &Shown { next: fields.destination(), email, error })
        }
        refused => refused.into_response(),
    }
}

fn form(kind: Kind, mut visitor: Visitor, shown: &Shown) -> Response {
    let bound = visitor.bind();
    filled(kind, &visitor, shown, bound.as_slice())
}

fn filled(
    kind: Kind,
    visitor: &Visitor,
    shown: &Shown,
    cookies: &[cookie::Cookie<'_>],
) -> Response {
    let Shown { next, email, error } = shown;
    let fields = error.as_ref().map_or(&[][..], ApiError::fields);
    let content = html! {
        @if let Some(error) = error { (summary(error, *next)) }
        @else if let Some(flash) = visitor.flash { (notice(flash.text(), None)) }
        h1 { (kind.title()) }
        // The browser's own checks are off: its bubbles vanish, and not every reader reads them.
        form.account method="post" action=(kind.path()) novalidate {
            (form_fields(visitor, *next))
            (email_field(email, fields))
            (password_field(kind, fields))
            button.book { (kind.title()) }
        }
        p {
            @match kind {
                Kind::Login => {
                    "No account yet? " a href=(next.register()) { "Register" }
                }
                Kind::Register => {
                    "You have an account? " a href=(next.login()) { "Log in" }
                }
            }
        }
    };
    let (status, title) = match error {
        Some(error) => (error.status(), format!("Error: {}", kind.title())),
        None => (StatusCode::OK, kind.title().to_owned()),
    };
    let page = Page { title: &title, visitor, email: None, here: *next, content };
    let response = page.respond(status, cookies);
    match error {
        Some(error) => problem::retry_after(response, error),
        None => response,
    }
}

/// All that is wrong, each with a link to its field.
fn summary(error: &ApiError, next: Destination) -> Markup {
    let (title, text) = match error {
        // Nothing else is forbidden here.
        ApiError::Forbidden(text) => (problem::OUTDATED, (*text).to_owned()),
        error => problem::words(error),
    };
    let more = html! {
        @if let ApiError::Invalid(fields) = error {
            ul { @for field in fields { li { a href={ "#" (field.field) } { (sentence(field)) } } } }
        } @else if let ApiError::Conflict(Conflict::UserExists) = error {
            p { "There is an account with this email address. " a href=(next.login()) { "Log in" } }
        } @else {
            p { (text) }
        }
    };
    alert(title, &more)
}

fn sentence(error: &FieldError) -> String {
    let name = if error.field == "email" { "Email" } else { "Password" };
    format!("{name} {}", error.message)
}

fn email_field(value: &str, errors: &[FieldError]) -> Markup {
    let error = errors.iter().find(|error| error.field == "email");
    html! {
        div.field {
            label for="email" { "Email" }
            (message(error))
            input #email name="email" type="email" value=(value) required autocomplete="username"
                autocapitalize="none" spellcheck="false" maxlength="254"
                aria-invalid=[error.map(|_| "true")]
                aria-describedby=[error.map(|_| "email-error")];
        }
    }
}

fn password_field(kind: Kind, errors: &[FieldError]) -> Markup {
    let error = errors.iter().find(|error| error.field == "password");
    let (autocomplete, hint) = match kind {
        Kind::Login => ("current-password", None),
        Kind::Register => ("new-password", Some("password-hint")),
    };
    let ids: Vec<_> = hint.into_iter().chain(error.map(|_| "password-error")).collect();
    html! {
        div.field {
            label for="password" { "Password" }
            @if let Some(id) = hint {
                p.hint id=(id) { "12 characters or more. A few words are easy to remember." }
            }
            (message(error))
            input #password name="password" type="password" required autocomplete=(autocomplete)
                aria-invalid=[error.map(|_| "true")]
                aria-describedby=[(!ids.is_empty()).then(|| ids.join(" "))];
        }
    }
}

fn message(error: Option<&FieldError>) -> Markup {
    html! {
        @if let Some(error) = error {
            p.field-error id={ (error.field) "-error" } { (sentence(error)) }
        }
    }
}
