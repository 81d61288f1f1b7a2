use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::request::SlotPath;
use super::views::{Bookings, SlotView};
use crate::app::AppState;
use crate::auth::Identity;
use crate::booking::Booked;
use crate::error::{ApiError, Problem};

/// Books a slot. To send it again does no harm.
#[utoipa::path(
    post, path = "/slots/{id}/book", tag = "bookings",
    params(("id" = String, Path, format = Uuid)),
    security(("bearer" = [])),
    responses(
        (status = 201, description = "It is yours now.", body = SlotView),
        (status = 200, description = "It was yours already.", body = SlotView),
        (status = 401, description = "There is no valid token.", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such slot.", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "Somebody else has it, it has begun, or you have as many slots of that day as one may have.", body = Problem, content_type = "application/problem+json"),
        (status = 423, description = "Somebody is booking it right now, or you are booking another; see `Retry-After`.", body = Problem, content_type = "application/problem+json", headers(("Retry-After" = u64))),
        (status = 503, description = "The locks or the database are not available. `type` tells whether the outcome is open.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn book(
    State(state): State<AppState>,
    identity: Identity,
    SlotPath(id): SlotPath,
) -> Result<(StatusCode, Json<SlotView>), ApiError> {
    let (status, slot) = match state.bookings.book(id, identity.user).await? {
        Booked::Now(slot) => (StatusCode::CREATED, slot),
        Booked::Already(slot) => (StatusCode::OK, slot),
    };
    Ok((status, Json(SlotView::new(&slot, Some(identity.user)))))
}

/// Gives a slot back. Only who has it may.
#[utoipa::path(
    delete, path = "/slots/{id}/booking", tag = "bookings",
    params(("id" = String, Path, format = Uuid)),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The slot is free again.", body = SlotView),
        (status = 401, description = "There is no valid token.", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "Somebody else has it.", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such slot, or nobody has it.", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "It has begun.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The database is not available. `type` tells whether the outcome is open.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn cancel(
    State(state): State<AppState>,
    identity: Identity,
    SlotPath(id): SlotPath,
) -> Result<Json<SlotView>, ApiError> {
    let slot = state.bookings.cancel(id, identity.user).await?;
    Ok(Json(SlotView::new(&slot, Some(identity.user))))
}

/// Your slots that have not ended.
#[utoipa::path(
    get, path = "/me/bookings", tag = "bookings",
    security(("bearer" = [])),
    responses(
        (status = 200, description = "Your slots.", body = Bookings),
        (status = 401, description = "There is no valid token.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The database is not available.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn mine(
    State(state): State<AppState>,
    identity: Identity,
) -> Result<Json<Bookings>, ApiError> {
    let slots = state.repository.slots_of(identity.user, state.settings.clock.now()).await?;
    let slots = slots.iter().map(|slot| SlotView::new(slot, Some(identity.user))).collect();
    Ok(Json(Bookings { slots }))
}
