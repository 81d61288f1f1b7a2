// In what utoipa makes of `params(..)`.
#![allow(unused_qualifications)]

use std::collections::HashMap;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, StatusCode, header};
use time::OffsetDateTime;
use utoipa::IntoParams;

use super::fields::Fields;
use super::views::{SlotPage, SlotRequest, SlotView};
use crate::app::AppState;
use crate::auth::Identity;
use crate::domain::{Day, FieldError, NewSlot, Slot, SlotId};
use crate::error::{ApiError, Problem};
use crate::repository::SlotQuery;

const DEFAULT_LIMIT: usize = 50;
const GREATEST_LIMIT: usize = 200;

/// Creates a slot. Organisers may.
#[utoipa::path(
    post, path = "/slots", tag = "slots",
    request_body = SlotRequest,
    security(("bearer" = [])),
    responses(
        (status = 201, description = "The slot, at `Location`.", body = SlotView, headers(("Location" = String))),
        (status = 400, description = "A field is wrong: which, and why.", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "There is no valid token.", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The user is not an organiser.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The database is not available.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn create(
    State(state): State<AppState>,
    identity: Identity,
    mut fields: Fields,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<SlotView>), ApiError> {
    if !identity.role.may_create_slots() {
        return Err(ApiError::Forbidden("Only organisers may create slots."));
    }
    let title = fields.string("title");
    let starts = fields.string("starts");
    let ends = fields.string("ends");
    let slot = match (title, starts, ends) {
        (Some(title), Some(starts), Some(ends)) => {
            NewSlot::parse(&title, &starts, &ends, state.settings.clock.now())
                .map_err(|errors| errors.into_iter().for_each(|error| fields.errors.push(error)))
                .ok()
        }
        _ => None,
    };
    let slot = fields.finish(slot)?.into_slot();
    state.repository.insert_slots(std::slice::from_ref(&slot)).await.map_err(|error| {
        tracing::warn!(error = ?error.to_string(), "a slot may have been created or not");
        ApiError::OutcomeOpen
    })?;
    state.days.changed(slot.day);
    let location = [(header::LOCATION, format!("/slots/{}", slot.id))];
    Ok((StatusCode::CREATED, location, Json(SlotView::new(&slot, Some(identity.user)))))
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
    Query(parameters): Query<HashMap<String, String>>,
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
    Path(id): Path<String>,
) -> Result<Json<SlotView>, ApiError> {
    let found = state.repository.slot(slot_id(&id)?).await?;
    let slot = found.ok_or(ApiError::NotFound("There is no such slot."))?;
    Ok(Json(SlotView::new(&slot, identity.map(|identity| identity.user))))
}

/// The id of a slot in a path. What is no id is the id of no slot.
pub(super) fn slot_id(text: &str) -> Result<SlotId, ApiError> {
    SlotId::parse(text).ok_or(ApiError::NotFound("There is no such slot."))
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
