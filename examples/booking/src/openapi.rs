//! The description of the API, made from the code: OpenAPI 3.1 at `/openapi.json`.

use axum::routing::get;
use axum::{Json, Router};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Info, OpenApi};

use crate::app::AppState;

/// The routes that show `api`.
pub fn routes(mut api: OpenApi) -> Router<AppState> {
    api.info = Info::new("Booking", env!("CARGO_PKG_VERSION"));
    api.info.description = Some("Slots, and who has them.".to_owned());
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build();
    let components = api.components.get_or_insert_default();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    Router::new().route("/openapi.json", get(async move || Json(api)))
}
