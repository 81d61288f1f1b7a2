// In what utoipa makes of `params(..)`.
#![allow(unused_qualifications)]

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use time::OffsetDateTime;
use utoipa::IntoParams;

use super::fields::Fields;
use super::request::{IdempotencyKey, Parameters, SlotPath};
use super::views::{SlotPage, SlotRequest, SlotView};
use crate::app::AppState;
use crate::auth::Identity;
use crate::domain::{Day, FieldError, NewSlot, Slot, SlotId, Window};
use crate::error::{ApiError, Problem, Write};
use crate::repository::SlotQuery;

const DEFAULT_LIMIT: usize = 50;
const GREATEST_LIMIT: usize = 200;

/// Creates a slot. Organisers may. To send it again with the same `Idempotency-Key` creates one.
#[utoipa::path(
    post, path = "/slots", tag = "slots",
    params(("Idempotency-Key" = Option<String>, Header, description = "Names the request, so that it can be sent again: 1 to 128 visible characters, such as a UUID.")),
    request_body = SlotRequest,
    security(("bearer" = [])),
    responses(
        (status = 201, description = "The slot, at `Location`.", body = SlotView, headers(("Location" = String))),
        (status = 400, description = "A field is wrong: which, and why.", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "There is no valid token.", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The user is not an organiser.", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The body has more than 16 KiB.", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "The body is not `application/json`.", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The `Idempotency-Key` was used with other fields.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The database is not available. `type` tells whether the outcome is open.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn create(
    State(state): State<AppState>,
    identity: Identity,
    IdempotencyKey(key): IdempotencyKey,
    mut fields: Fields,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<SlotView>), ApiError> {
    if !identity.role.may_create_slots() {
        return Err(ApiError::Forbidden("Only organisers may create slots."));
    }
    let title = fields.string("title");
    let starts = fields.string("starts");
    let ends = fields.string("ends");
    let all = title.zip(starts).zip(ends);
    let ((title, starts), ends) = fields.finish(all)?;
    let new = |window| NewSlot::parse(&title, &starts, &ends, window).map_err(ApiError::Invalid);
    let id = key.as_ref().map(|key| key.slot(identity.user));
    let slot = match (new(state.settings.window()), id) {
        (Ok(new), id) => create_slot(&state, id, new).await?,
        // A request that has created its slot can be repeated when that has begun, too.
        (Err(error), Some(id)) => match new(Window::ALWAYS) {
            Ok(new) => created_before(&state, id, &new).await?.ok_or(error)?,
            Err(_) => return Err(error),
        },
        (Err(error), None) => return Err(error),
    };
    let location = [(header::LOCATION, format!("/slots/{}", slot.id))];
    Ok((StatusCode::CREATED, location, Json(SlotView::new(&slot, Some(identity.user)))))
}

/// The slot that the same request with the same key, which is in the id, has created.
async fn created_before(
    state: &AppState,
    id: SlotId,
    new: &NewSlot,
) -> Result<Option<Slot>, ApiError> {
    match state.repository.slot(id).await? {
        Some(slot) if !new.describes(&slot) => Err(ApiError::KeyReused),
        found => Ok(found),
    }
}

async fn create_slot(state: &AppState, id: Option<SlotId>, new: NewSlot) -> Result<Slot, ApiError> {
    let slot = new.clone().with_id(id.unwrap_or_else(SlotId::random));
    match state.repository.insert_slot(&slot).await {
        Ok(true) => {
            state.days.changed(slot.day);
            Ok(slot)
        }
        // The same request, at the same time.
        Ok(false) => created_before(state, slot.id, &new).await?.ok_or(ApiError::Internal),
        Err(error) => {
            tracing::warn!(error = ?error.to_string(), "a slot may have been created or not");
            Err(ApiError::OutcomeOpen(Write::Slot { keyed: id.is_some() }))
        }
    }
}

/// The query of a list.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)] // It describes what `query` reads.
pub(super) struct ListParameters {
    /// Of this day alone, in UTC.
    #[param(format = Date, example = "2027-01-31")]
    day: Option<String>,
    /// So many at most: 1 to 200.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u16>,
    /// `next` of the page before.
    after: Option<String>,
}

/// Lists slots, in the order in which they start. With a token it says which of them are yours.
#[utoipa::path(
    get, path = "/slots", tag = "slots",
    params(ListParameters),
    security((), ("bearer" = [])),
    responses(
        (status = 200, description = "A page of slots.", body = SlotPage),
        (status = 400, description = "A parameter is wrong: which, and why.", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "The token is not valid.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The database is not available.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn list(
    State(state): State<AppState>,
    identity: Option<Identity>,
    Parameters(parameters): Parameters,
) -> Result<Json<SlotPage>, ApiError> {
    let query = query(parameters)?;
    let viewer = identity.map(|identity| identity.user);
    // One more than asked for tells whether there is a next page.
    let mut slots = state.repository.slots(&SlotQuery { limit: query.limit + 1, ..query }).await?;
    let more = slots.len() > query.limit;
    slots.truncate(query.limit);
    let next = slots.last().filter(|_| more).map(cursor);
    let slots = slots.iter().map(|slot| SlotView::new(slot, viewer)).collect();
    Ok(Json(SlotPage { slots, next }))
}

/// One slot.
#[utoipa::path(
    get, path = "/slots/{id}", tag = "slots",
    params(("id" = String, Path, format = Uuid)),
    security((), ("bearer" = [])),
    responses(
        (status = 200, description = "The slot.", body = SlotView),
        (status = 401, description = "The token is not valid.", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such slot.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The database is not available.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn one(
    State(state): State<AppState>,
    identity: Option<Identity>,
    SlotPath(id): SlotPath,
) -> Result<Json<SlotView>, ApiError> {
    let found = state.repository.slot(id).await?;
    let slot = found.ok_or(ApiError::NotFound("There is no such slot."))?;
    Ok(Json(SlotView::new(&slot, identity.map(|identity| identity.user))))
}

fn query(mut parameters: HashMap<String, String>) -> Result<SlotQuery, ApiError> {
    let mut errors = crate::domain::FieldErrors::default();
    let day = parameters.remove("day").map(|text| Day::parse(&text));
    let day = day.and_then(|day| errors.take(day));
    let limit = parameters.remove("limit").map(|text| {
        let limit = text.parse().ok().filter(|limit| (1..=GREATEST_LIMIT).contains(limit));
        limit.ok_or(FieldError::new("limit", "must be a number from 1 to 200"))
    });
    let limit = limit.map_or(Some(DEFAULT_LIMIT), |limit| errors.take(limit));
    let after = parameters.remove("after").map(|text| {
        let wrong = FieldError::new("after", "must be the `next` of the page before");
        position(&text).ok_or(wrong)
    });
    let after = after.and_then(|after| errors.take(after));
    let errors = errors.into_vec();
    if !errors.is_empty() {
        return Err(ApiError::Invalid(errors));
    }
    if !parameters.is_empty() {
        return Err(ApiError::Malformed("The parameters are `day`, `limit` and `after`.".into()));
    }
    Ok(SlotQuery { day, after, limit: limit.unwrap_or(DEFAULT_LIMIT), ..SlotQuery::default() })
}

/// Names a slot's position, so that a page goes on behind it even if the slot has gone meanwhile.
fn cursor(slot: &Slot) -> String {
    format!("{}_{}", slot.starts.unix_timestamp(), slot.id)
}

fn position(cursor: &str) -> Option<(OffsetDateTime, SlotId)> {
    let (starts, id) = cursor.split_once('_')?;
    let starts = OffsetDateTime::from_unix_timestamp(starts.parse().ok()?).ok()?;
    Some((starts, SlotId::parse(id)?))
}
