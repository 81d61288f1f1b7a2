//! The page for people.

use axum::Router;

use crate::app::AppState;

/// The page's routes.
pub fn routes() -> Router<AppState> {
    Router::new()
}
