//! The description of the API, made from the code: OpenAPI 3.1 at `/openapi.json`, and for people a
//! page at `/docs` that needs nothing from anywhere else.

mod page;

use axum::http::header;
use axum::response::Html;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::Value;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Info, OpenApi};

use crate::app::AppState;

const POLICY: &str =
    "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'";

/// The routes that show `api`.
pub fn routes(mut api: OpenApi) -> Router<AppState> {
    api.info = Info::new("Booking", env!("CARGO_PKG_VERSION"));
    api.info.description = Some("Slots, and who has them.".to_owned());
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build();
    let components = api.components.get_or_insert_default();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    // It is made of strings and maps, so there is nothing that could fail.
    let api = serde_json::to_value(api).unwrap_or(Value::Null);
    let page = page::html(&api);
    let policy = [(header::CONTENT_SECURITY_POLICY, POLICY)];
    let style = [(header::CONTENT_TYPE, "text/css; charset=utf-8")];
    Router::new()
        .route("/openapi.json", get(async move || Json(api)))
        .route("/docs", get(async move || (policy, Html(page))))
        .route("/docs.css", get(async move || (style, page::STYLE)))
}
