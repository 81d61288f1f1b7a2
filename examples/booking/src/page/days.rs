//! The slots of a day.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use time::OffsetDateTime;

use super::destination::Destination;
use super::flash::Flash;
use super::layout::{Page, alert, csrf_field, notice, redirect_to};
use super::slot_item::{self, FORM};
use super::visitor::Visitor;
use super::{cookies, problem};
use crate::app::AppState;
use crate::domain::{Day, Slot};
use crate::error::ApiError;
use crate::events::SLOTS_OF_A_DAY;
use crate::repository::SlotQuery;

/// The slots of today.
pub(super) async fn today(State(state): State<AppState>, visitor: Visitor) -> Response {
    show(&state, &visitor, Day::of(state.settings.clock.now())).await
}

/// The slots of a day.
pub(super) async fn one(
    State(state): State<AppState>,
    Path(day): Path<String>,
    visitor: Visitor,
) -> Response {
    match Day::parse(&day) {
        Ok(day) => show(&state, &visitor, day).await,
        Err(_) => problem::page(&visitor, &ApiError::NotFound("There is no such day.")),
    }
}

async fn show(state: &AppState, visitor: &Visitor, day: Day) -> Response {
    let shown = visitor.flash.map(|_| cookies::removal(cookies::FLASH));
    match content(state, visitor, day, None).await {
        Ok(page) => page.page(visitor).respond(StatusCode::OK, shown.as_slice()),
        Err(error) => problem::page(visitor, &error),
    }
}

/// The slots of a slot's day, and above them why what was asked for was not done.
pub(super) async fn refusal(
    state: &AppState,
    visitor: &Visitor,
    slot: &Slot,
    action: &str,
    error: &ApiError,
) -> Response {
    let (title, text) = problem::words(error);
    let label = slot_item::label(slot);
    let alert = alert(
        title,
        &html! {
            p { (text) " " (link(slot, &format!("Show {label} in the list"))) }
            @if error.retry_after().is_some() {
                (slot_item::button(slot, action, "Try again", &label))
            }
        },
    );
    match content(state, visitor, slot.day, Some(alert)).await {
        Ok(mut page) => {
            page.title = format!("Error: {title} {}", page.title);
            problem::retry_after(page.page(visitor).respond(error.status(), &[]), error)
        }
        Err(_) => problem::page(visitor, error),
    }
}

/// What the user has booked, of all days, and is not over.
pub(super) async fn bookings(State(state): State<AppState>, visitor: Visitor) -> Response {
    let Some(identity) = visitor.identity else {
        return redirect_to("/page/login?next=/page/bookings", Some(Flash::LogInFirst), &[]);
    };
    let now = state.settings.clock.now();
    let found = async {
        let slots = state.repository.slots_of(identity.user, now).await?;
        Ok::<_, ApiError>((slots, visitor.email(&state).await?))
    };
    let (slots, email) = match found.await {
        Ok(found) => found,
        Err(error) => return problem::page(&visitor, &error),
    };
    let content = html! {
        h1 { "Your bookings" }
        p.hint { "Times are in UTC." }
        form id=(FORM) method="post" { (csrf_field(&visitor)) }
        ol #bookings role="list" { @for slot in &slots { (slot_item::own(slot, now)) } }
        @if slots.is_empty() { p { "You have booked nothing. " a href="/" { "Today's slots" } } }
    };
    let here = Destination::default();
    Page { title: "Your bookings", visitor: &visitor, email: email.as_ref(), here, content }
        .respond(StatusCode::OK, &[])
}

struct Content {
    title: String,
    email: Option<crate::domain::Email>,
    day: Day,
    html: Markup,
}

impl Content {
    fn page<'a>(&'a self, visitor: &'a Visitor) -> Page<'a> {
        Page {
            title: &self.title,
            visitor,
            email: self.email.as_ref(),
            here: Destination::day(self.day),
            content: self.html.clone(),
        }
    }
}

async fn content(
    state: &AppState,
    visitor: &Visitor,
    day: Day,
    alert: Option<Markup>,
) -> Result<Content, ApiError> {
    let query = SlotQuery { day: Some(day), after: None, limit: SLOTS_OF_A_DAY };
    let slots = state.repository.slots(&query).await?;
    let email = visitor.email(state).await?;
    let user = visitor.identity.map(|identity| identity.user);
    let now = state.settings.clock.now();
    let title = slot_item::long(day);
    let events = user.map_or_else(
        || format!("/page/days/{day}/events"),
        |user| format!("/page/days/{day}/events?user={user}"),
    );
    let html = html! {
        @if let Some(alert) = alert { (alert) }
        @else if let Some(flash) = visitor.flash { (told(flash, &slots)) }
        h1 { time datetime=(day) { (title) } }
        (navigation(day, Day::of(now)))
        @if user.is_none() {
            p.call {
                a href={ "/page/login?next=" (Destination::day(day)) } { "Log in" } " or "
                a href={ "/page/register?next=" (Destination::day(day)) } { "register" }
                " to book."
            }
        }
        p.hint {
            "Times are in UTC. "
            span #live hidden {}
            noscript { "Reload the page to see what has changed." }
        }
        // Says what has changed; nothing else, so that nothing else is read out.
        p #news.unseen role="status" {}
        form id=(FORM) method="post" { @if user.is_some() { (csrf_field(visitor)) } }
        ol #slots role="list" data-events=(events) { (items(&slots, visitor, now)) }
        p #none hidden[!slots.is_empty()] { "There are no slots on this day." }
        @if slots.len() == SLOTS_OF_A_DAY { p { "These are the first " (SLOTS_OF_A_DAY) "." } }
    };
    Ok(Content { title: format!("Slots of {title}"), email, day, html })
}

fn items(slots: &[Slot], visitor: &Visitor, now: OffsetDateTime) -> Markup {
    let user = visitor.identity.map(|identity| identity.user);
    html! { @for slot in slots { (slot_item::item(slot, user, now)) } }
}

fn navigation(day: Day, today: Day) -> Markup {
    let is_today = day == today;
    let path = Destination::day;
    html! {
        nav.days aria-label="Day" {
            ul role="list" {
                li { a rel="prev" href=(path(day.previous())) { "← Previous" span.unseen { " day" } } }
                li { a href="/" aria-current=[is_today.then_some("date")] { "Today" } }
                li { a rel="next" href=(path(day.next())) { "Next" span.unseen { " day" } " →" } }
            }
        }
    }
}

/// What came of the last form.
fn told(flash: Flash, slots: &[Slot]) -> Markup {
    let slot = flash.slot().and_then(|id| slots.iter().find(|slot| slot.id == id));
    match (flash, slot) {
        (Flash::Booked(_), Some(slot)) => {
            let text = format!("You have booked {}.", slot_item::label(slot));
            notice(&text, Some(link(slot, "Show it in the list")))
        }
        (Flash::Cancelled(_), Some(slot)) => {
            let text = format!("You have cancelled {}.", slot_item::label(slot));
            notice(&text, Some(link(slot, "Show it in the list")))
        }
        // It is not of this day; or a login that is asked for elsewhere.
        (Flash::LogInFirst, _) => html! {},
        (flash, _) => notice(flash.text(), None),
    }
}

fn link(slot: &Slot, text: &str) -> Markup {
    html! { a href={ "#slot-" (slot.id) } { (text) } }
}
