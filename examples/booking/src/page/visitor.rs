//! The visitor of a page.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use cookie::Cookie;
use rand::RngCore;

use super::flash::Flash;
use super::{cookies, csrf};
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

    /// Whether this is the token of this visitor's forms.
    pub(super) fn is_token(&self, token: &str) -> bool {
        self.key.as_deref().is_some_and(|key| csrf::is_right(token, key))
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
