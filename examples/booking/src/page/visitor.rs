//! Who looks at the page, and what a form of theirs says.

use std::collections::HashMap;
use std::convert::Infallible;

use axum::extract::{Form, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::response::Response;
use cookie::Cookie;
use rand::RngCore;

use super::flash::Flash;
use super::{cookies, csrf, problem};
use crate::app::AppState;
use crate::auth::Identity;
use crate::domain::Email;
use crate::error::ApiError;

/// Who asks, as the cookies say.
#[derive(Debug)]
pub(super) struct Visitor {
    /// The user, if somebody is logged in.
    pub(super) identity: Option<Identity>,
    /// What the page has to say of the last form.
    pub(super) flash: Option<Flash>,
    /// The cookie that forms are bound to: the session, or else the visitor's.
    key: Option<String>,
}

impl Visitor {
    /// The token of this visitor's forms.
    pub(super) fn csrf(&self) -> Option<String> {
        self.key.as_deref().map(csrf::token)
    }

    /// Binds forms to a cookie, which is to be set, unless there is one already.
    pub(super) fn bind(&mut self) -> Option<Cookie<'static>> {
        if self.key.is_some() {
            return None;
        }
        let mut bytes = [0; 16];
        rand::rng().fill_bytes(&mut bytes);
        let key: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let cookie = cookies::visitor(&key);
        self.key = Some(key);
        Some(cookie)
    }

    /// The address of who is logged in.
    pub(super) async fn email(&self, state: &AppState) -> Result<Option<Email>, ApiError> {
        let Some(identity) = self.identity else { return Ok(None) };
        Ok(state.repository.user(identity.user).await?.map(|user| user.email))
    }
}

impl FromRequestParts<AppState> for Visitor {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Infallible> {
        let session = cookies::get(&parts.headers, cookies::SESSION)
            .and_then(|token| Some((state.tokens.verify(&token).ok()?, token)));
        let (identity, session) = session.unzip();
        let visitor = || cookies::get(&parts.headers, cookies::VISITOR);
        let key = session.or_else(visitor).filter(|key| !key.is_empty());
        let flash = cookies::get(&parts.headers, cookies::FLASH);
        Ok(Self { identity, flash: flash.as_deref().and_then(Flash::parse), key })
    }
}

/// A form that was sent from a page of ours, for the same session. A handler that changes something
/// takes it as an argument; all other requests are refused before.
#[derive(Debug)]
pub(super) struct Posted {
    /// Who sent it.
    pub(super) visitor: Visitor,
    fields: HashMap<String, String>,
}

impl Posted {
    /// A field's text; empty if there is no such field.
    pub(super) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

impl FromRequest<AppState> for Posted {
    type Rejection = Response;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let Ok(visitor) = Visitor::from_request_parts(&mut parts, state).await;
        if !csrf::is_from_here(&parts.headers) {
            return Err(problem::foreign(&visitor));
        }
        let request = Request::from_parts(parts, body);
        let fields = match Form::<HashMap<String, String>>::from_request(request, state).await {
            Ok(Form(fields)) => fields,
            Err(_) => {
                let error = ApiError::Malformed("That is not a form of this page.".into());
                return Err(problem::page(&visitor, &error));
            }
        };
        let token = fields.get("csrf").map_or("", String::as_str);
        if !visitor.key.as_deref().is_some_and(|key| csrf::is_right(token, key)) {
            return Err(problem::outdated(&visitor));
        }
        Ok(Self { visitor, fields })
    }
}
