//! The JSON API.

mod bookings;
mod fields;
mod operations;
mod request;
mod slots;
mod users;
mod views;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::request::IDEMPOTENCY_KEY;
pub use self::views::{Account, Bookings, Credentials, SlotPage, SlotRequest, SlotView, TokenView};
use crate::app::AppState;

/// The API's routes, with their description.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(users::register))
        .routes(routes!(users::login))
        .routes(routes!(slots::create, slots::list))
        .routes(routes!(slots::one))
        .routes(routes!(bookings::book))
        .routes(routes!(bookings::cancel))
        .routes(routes!(bookings::mine))
        .routes(routes!(operations::healthz))
        .routes(routes!(operations::readyz))
        .routes(routes!(operations::metrics))
}
