//! The page for people.
//!
//! The server writes all of it, and links and forms are enough to use it: a form is answered with a
//! redirect to a page that says what came of it, so that reloading repeats nothing. A small script
//! makes the list of slots live (`events`).
//!
//! A session is the API's token in a cookie that no script can read. What a browser sends along by
//! itself, another site's page could make it send; so what changes something is asked for by a form
//! with a token of that session, from a page of ours (`csrf`).

mod accounts;
mod assets;
mod cookies;
mod csrf;
mod day_list;
mod days;
mod destination;
mod events;
mod flash;
mod layout;
mod posted;
mod problem;
mod segment;
mod slot_item;
mod slots;
mod visitor;

use axum::Router;
use axum::middleware::map_response;
use axum::routing::{get, post};

use crate::app::AppState;

/// The page's routes.
pub fn routes() -> Router<AppState> {
    Router::new()
        .route("/", get(days::today))
        .route("/page/days/{day}", get(days::one))
        .route("/page/bookings", get(days::bookings))
        .route("/page/days/{day}/events", get(events::stream))
        .route("/page/slots/{id}", get(slots::show))
        // Where a browser stays after a refusal; its reader may well ask for that address again.
        .route("/page/slots/{id}/book", get(slots::show).post(slots::book))
        .route("/page/slots/{id}/cancel", get(slots::show).post(slots::cancel))
        .route("/page/login", get(accounts::login_form).post(accounts::login))
        .route("/page/register", get(accounts::register_form).post(accounts::register))
        .route("/page/logout", post(accounts::logout))
        .route("/page/assets/{name}", get(assets::serve))
        .layer(map_response(layout::secure))
}
