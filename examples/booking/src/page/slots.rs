//! Booking and cancelling, by forms.

use axum::extract::State;
use axum::response::Response;

use super::destination::Destination;
use super::flash::Flash;
use super::posted::Posted;
use super::segment::Segment;
use super::visitor::Visitor;
use super::{days, layout, problem};
use crate::app::AppState;
use crate::booking::Booked;
use crate::domain::{Slot, SlotId};
use crate::error::ApiError;

const NO_SUCH_SLOT: ApiError = ApiError::NotFound("There is no such slot.");

/// Books a slot.
pub(super) async fn book(
    State(state): State<AppState>,
    Segment(id): Segment,
    posted: Posted,
) -> Response {
    let Some(identity) = posted.visitor.identity else { return log_in_first(&posted) };
    let Some(id) = SlotId::parse(&id) else { return problem::page(&posted.visitor, &NO_SUCH_SLOT) };
    match state.bookings.book(id, identity.user).await {
        Ok(Booked::Now(slot) | Booked::Already(slot)) => {
            done(&state, &slot, Flash::Booked(id)).await
        }
        Err(error) => refused(&state, &posted.visitor, id, "book", &error).await,
    }
}

/// Cancels a booking.
pub(super) async fn cancel(
    State(state): State<AppState>,
    Segment(id): Segment,
    posted: Posted,
) -> Response {
    let Some(identity) = posted.visitor.identity else { return log_in_first(&posted) };
    let Some(id) = SlotId::parse(&id) else { return problem::page(&posted.visitor, &NO_SUCH_SLOT) };
    match state.bookings.cancel(id, identity.user).await {
        Ok(slot) => done(&state, &slot, Flash::Cancelled(id)).await,
        Err(error) => refused(&state, &posted.visitor, id, "cancel", &error).await,
    }
}

/// On to the slot, on the page that has it.
pub(super) async fn show(
    State(state): State<AppState>,
    Segment(id): Segment,
    visitor: Visitor,
) -> Response {
    match slot(&state, &id).await {
        Ok(slot) => {
            let page = Destination::Day(days::page_of(&state, &slot).await);
            layout::redirect_to(&format!("{page}#slot-{}", slot.id), None, &[])
        }
        Err(error) => problem::page(&visitor, &error),
    }
}

async fn done(state: &AppState, slot: &Slot, flash: Flash) -> Response {
    let page = days::page_of(state, slot).await;
    layout::redirect(Destination::Day(page), Some(flash), &[])
}

fn log_in_first(posted: &Posted) -> Response {
    let login = posted.destination().login();
    layout::redirect_to(&login, Some(Flash::LogInFirst), &[])
}

async fn refused(
    state: &AppState,
    visitor: &Visitor,
    id: SlotId,
    action: &str,
    error: &ApiError,
) -> Response {
    match slot(state, &id.to_string()).await {
        Ok(slot) => days::refusal(state, visitor, &slot, action, error).await,
        // There is no day to show it on.
        Err(_) => problem::page(visitor, error),
    }
}

async fn slot(state: &AppState, id: &str) -> Result<Slot, ApiError> {
    let id = SlotId::parse(id).ok_or(NO_SUCH_SLOT)?;
    state.repository.slot(id).await?.ok_or(NO_SUCH_SLOT)
}
