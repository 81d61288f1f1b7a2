//! A form that a visitor has sent.

use std::collections::HashMap;

use axum::extract::{Form, FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Response};

use super::destination::Destination;
use super::flash::Flash;
use super::visitor::Visitor;
use super::{csrf, layout, problem};
use crate::app::AppState;
use crate::error::ApiError;

/// A form that was sent from a page of ours, for the same session. A handler that changes something
/// takes it as an argument; all other requests are refused before.
#[derive(Debug)]
pub(super) struct Posted {
    /// The visitor that sent it.
    pub(super) visitor: Visitor,
    fields: Fields,
}

/// What a form says.
#[derive(Debug, Default)]
pub(super) struct Fields(HashMap<String, String>);

/// Why a form was refused. As an answer it is the one for visitors that were logged in; the forms of
/// accounts have an answer of their own.
#[derive(Debug)]
pub(super) enum Refused {
    /// Another site's page made the request.
    Foreign(Visitor),
    /// The body is no form.
    NoForm(Visitor),
    /// The form was made for another session, or for none.
    Outdated(Visitor, Fields),
}

impl Fields {
    /// A field's text; empty if there is no such field.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The page that the form is on, or is to lead to.
    pub(super) fn destination(&self) -> Destination {
        Destination::parse(self.text("next"))
    }
}

impl Posted {
    /// A field's text; empty if there is no such field.
    pub(super) fn field(&self, name: &str) -> &str {
        self.fields.text(name)
    }

    /// The page that the form is on, or is to lead to.
    pub(super) fn destination(&self) -> Destination {
        self.fields.destination()
    }
}

impl FromRequest<AppState> for Posted {
    type Rejection = Refused;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Refused> {
        let (mut parts, body) = request.into_parts();
        let Ok(mut visitor) = Visitor::from_request_parts(&mut parts, state).await;
        // A message waits for the page that a redirect leads to; no other site's form takes it away.
        visitor.flash = None;
        if !csrf::is_from_here(&parts.headers) {
            return Err(Refused::Foreign(visitor));
        }
        let request = Request::from_parts(parts, body);
        let fields = match Form::<HashMap<String, String>>::from_request(request, state).await {
            Ok(Form(fields)) => Fields(fields),
            Err(_) => return Err(Refused::NoForm(visitor)),
        };
        if visitor.is_token(fields.text("csrf")) {
            Ok(Self { visitor, fields })
        } else {
            Err(Refused::Outdated(visitor, fields))
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::Foreign(visitor) => problem::foreign(&visitor),
            Self::NoForm(visitor) => {
                let error = ApiError::Malformed("That is not a form of this page.".into());
                problem::page(&visitor, &error)
            }
            Self::Outdated(visitor, fields) if visitor.identity.is_some() => {
                problem::outdated(&visitor, fields.destination())
            }
            // The browser has forgotten the session, or the session has ended.
            Self::Outdated(_, fields) => {
                let login = fields.destination().login();
                layout::redirect_to(&login, Some(Flash::LoginEnded), &[])
            }
        }
    }
}
