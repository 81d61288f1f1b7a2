//! The slots of a day as a stream, by which the page's script keeps the list up to date.
//!
//! Each event `slots` is the whole list, so a browser that was away for a while has missed nothing:
//! there is no history to keep, and `Last-Event-ID` has nothing to say.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use maud::{PreEscaped, html};
use rand::Rng;
use serde::Deserialize;
use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;

use super::slot_item;
use super::visitor::Visitor;
use crate::app::AppState;
use crate::auth::Identity;
use crate::client_address::ClientAddress;
use crate::clock::Clock;
use crate::domain::{Day, UserId};
use crate::error::ApiError;
use crate::events::{DaySlots, DayWatch};

/// So that a proxy does not take the connection for a dead one.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// However busy a day is, a browser is told five times a second at most, of all that has happened
/// since: each event is a whole list.
const PAUSE: Duration = Duration::from_millis(200);

/// For whom the page was made.
#[derive(Deserialize)]
pub(super) struct For {
    user: Option<Uuid>,
}

/// The slots of a day, now and whenever they have changed.
pub(super) async fn stream(
    State(state): State<AppState>,
    ClientAddress(address): ClientAddress,
    Path(day): Path<String>,
    Query(page): Query<For>,
    visitor: Visitor,
) -> Result<Response, ApiError> {
    let day = Day::parse(&day).map_err(|_| ApiError::NotFound("There is no such day."))?;
    let viewer = visitor.identity.map(|identity| identity.user);
    if viewer != page.user.map(UserId) {
        // The page shows somebody else's name, and the wrong buttons.
        // An event without data is none to a browser.
        let event = Event::default().event("viewer").data("another");
        let only = stream::iter([Ok::<_, Infallible>(event)]);
        return Ok(Sse::new(only).into_response());
    }
    let live = live(state.days.watch(day, address).await?, visitor.identity, state.settings.clock);
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    // What nginx is told by, to pass each event on at once.
    let unbuffered = [("x-accel-buffering", "no")];
    Ok((unbuffered, Sse::new(live).keep_alive(keep_alive)).into_response())
}

/// Ends with the service, and with the login of who looks.
fn live(
    watch: DayWatch,
    identity: Option<Identity>,
    clock: Clock,
) -> impl Stream<Item = Result<Event, Infallible>> {
    // When a replica ends, its readers do not all come to the next one in the same moment.
    let retry = Duration::from_millis(rand::rng().random_range(1000..3000));
    let end = identity.map(|identity| {
        let rest = identity.expires - clock.now();
        Instant::now() + Duration::try_from(rest).unwrap_or_default()
    });
    let viewer = identity.map(|identity| identity.user);
    stream::unfold((watch, Some(retry)), move |(mut watch, retry)| async move {
        if retry.is_none() {
            tokio::time::sleep(PAUSE).await;
        }
        let slots = match end {
            Some(end) => tokio::time::timeout_at(end, watch.next()).await.ok()??,
            None => watch.next().await?,
        };
        let event = event(&slots, viewer, clock.now());
        let event = match retry {
            Some(retry) => event.retry(retry),
            None => event,
        };
        Some((Ok(event), (watch, None)))
    })
}

fn event(slots: &DaySlots, viewer: Option<UserId>, now: OffsetDateTime) -> Event {
    let items = html! {
        // A browser drops an event without data, and the last slot would stay on the page.
        (PreEscaped("<!-- slots -->"))
        @for slot in slots.iter() { (slot_item::item(slot, viewer, now)) }
    };
    Event::default().event("slots").data(items.into_string())
}
