//! The slots of a page of a day as a stream, by which the page's script keeps the list up to date.
//!
//! Each event `slots` is the whole list, so a browser that was away for a while has missed nothing:
//! there is no history to keep, and `Last-Event-ID` has nothing to say. An event `beat` comes when
//! nothing changes, so the script can tell a quiet day from a service that stands still. Both carry
//! the service's time, as a browser's own clock may be wrong.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use maud::html;
use rand::Rng;
use time::OffsetDateTime;
use tokio::time::Instant;

use super::day_list::{self, NO_SUCH_PAGE, Place};
use super::segment::Segment;
use super::slot_item::milliseconds;
use super::visitor::Visitor;
use crate::app::AppState;
use crate::client_address::ClientAddress;
use crate::clock::Clock;
use crate::domain::{Day, DayPage, UserId};
use crate::error::ApiError;
use crate::events::{DaySlots, DayWatch, slots_of};

/// The longest time without an event. The script takes three times as much for silence. A proxy does
/// not take the connection for a dead one meanwhile.
pub(super) const BEAT: Duration = Duration::from_secs(5);

/// However busy a day is, a browser is told five times a second at most, of all that has happened
/// since: each event is a whole list.
const PAUSE: Duration = Duration::from_millis(200);

/// Added to a wait for a time of day: a timer that ends a little early would find nothing to tell.
const ROUNDING: Duration = Duration::from_millis(2);

/// The path of a page's stream, for this viewer.
pub(super) fn path(page: DayPage, viewer: Option<UserId>) -> String {
    let number = (page.number() > 1).then(|| format!("page={}", page.number()));
    let viewer = viewer.map(|viewer| format!("user={viewer}"));
    let query: Vec<_> = number.into_iter().chain(viewer).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("/page/days/{}/events{mark}{}", page.day(), query.join("&"))
}

/// The slots of a page, now and whenever they have changed. The query says which page of the day, and
/// for whom it was made.
pub(super) async fn stream(
    State(state): State<AppState>,
    ClientAddress(address): ClientAddress,
    Segment(day): Segment,
    Query(parameters): Query<HashMap<String, String>>,
    visitor: Visitor,
) -> Result<Response, ApiError> {
    let day = Day::parse(&day).map_err(|_| ApiError::NotFound("There is no such day."))?;
    let number = parameters.get("page").map_or("1", String::as_str);
    let shown = DayPage::parse(day, number).ok_or(NO_SUCH_PAGE)?;
    let viewer = visitor.identity.map(|identity| identity.user);
    if viewer.map(|viewer| viewer.to_string()).as_ref() != parameters.get("user") {
        // The page shows somebody else's name, and the wrong buttons.
        // An event without data is none to a browser.
        let event = Event::default().event("viewer").data("another");
        let only = stream::iter([Ok::<_, Infallible>(event)]);
        return Ok(Sse::new(only).into_response());
    }
    // An empty page costs no place among the pages that are watched.
    if shown.number() > 1 && slots_of(&*state.repository, shown).await?.slots.is_empty() {
        return Err(NO_SUCH_PAGE);
    }
    let clock = state.settings.clock;
    let end = visitor.identity.map(|identity| Instant::now() + until(identity.expires, clock));
    let watch = state.days.watch(shown, address).await?;
    let told = Told { watch, page: shown, viewer, clock, end, last: None };
    // What nginx is told by, to pass each event on at once.
    let unbuffered = [("x-accel-buffering", "no")];
    Ok((unbuffered, Sse::new(told.events())).into_response())
}

/// What a browser is told.
struct Told {
    watch: DayWatch,
    page: DayPage,
    viewer: Option<UserId>,
    clock: Clock,
    /// When the login of the viewer ends.
    end: Option<Instant>,
    /// The slots of the last event `slots`, and the time that they were shown for.
    last: Option<(DaySlots, OffsetDateTime)>,
}

impl Told {
    /// Ends with the service, and with the viewer's login.
    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, async |mut told| {
            let event = match told.last {
                // When a replica ends, its readers do not all come to the next one in the same
                // moment.
                None => {
                    let retry = Duration::from_millis(rand::rng().random_range(1000..3000));
                    told.next().await?.retry(retry)
                }
                Some(_) => {
                    tokio::time::sleep(PAUSE).await;
                    told.next().await?
                }
            };
            Some((Ok(event), told))
        })
    }

    async fn next(&mut self) -> Option<Event> {
        let look = Instant::now() + self.quiet();
        let look = self.end.map_or(look, |end| end.min(look));
        match tokio::time::timeout_at(look, self.watch.next()).await {
            Ok(slots) => Some(self.slots(slots?)),
            Err(_) if self.end.is_some_and(|end| end <= Instant::now()) => None,
            Err(_) => Some(self.look_again()),
        }
    }

    /// How long there is nothing to tell while no slot is changed.
    fn quiet(&self) -> Duration {
        let Some((slots, shown)) = &self.last else { return BEAT };
        let ahead = slots.slots.iter().map(|slot| slot.starts).filter(|starts| starts > shown);
        ahead.min().map_or(BEAT, |starts| BEAT.min(until(starts, self.clock) + ROUNDING))
    }

    /// A slot that has begun looks different, though no request has changed it; and a clock can be set.
    fn look_again(&mut self) -> Event {
        let now = self.clock.now();
        match &self.last {
            Some((slots, shown))
                if slots
                    .slots
                    .iter()
                    .any(|slot| (slot.starts <= *shown) != (slot.starts <= now)) =>
            {
                self.slots(slots.clone())
            }
            _ => Event::default().event("beat").data(milliseconds(now).to_string()),
        }
    }

    fn slots(&mut self, slots: DaySlots) -> Event {
        let now = self.clock.now();
        let list = html! {
            // It is never empty: a browser drops an event without data.
            ol data-now=(milliseconds(now)) {
                (day_list::items(&slots, self.viewer, now))
            }
            @for place in [Place::Above, Place::Below] {
                (day_list::pages(self.page, &slots, place))
            }
        };
        self.last = Some((slots, now));
        Event::default().event("slots").data(list.into_string())
    }
}

/// How long it is to a time.
fn until(time: OffsetDateTime, clock: Clock) -> Duration {
    Duration::try_from(time - clock.now()).unwrap_or_default()
}
