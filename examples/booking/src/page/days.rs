//! The slots of a day, and the bookings of a user.

use std::collections::HashMap;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use super::day_list::{self, NO_SUCH_PAGE, Place};
use super::destination::Destination;
use super::flash::Flash;
use super::layout::{Page, alert, form_fields, notice, redirect_to};
use super::segment::Segment;
use super::slot_item::{self, FORM, milliseconds};
use super::visitor::Visitor;
use super::{events, problem};
use crate::app::AppState;
use crate::domain::{Day, DayPage, Slot};
use crate::error::ApiError;
use crate::events::slots_of;

const NO_SUCH_DAY: ApiError = ApiError::NotFound("There is no such day.");

/// The slots of today.
pub(super) async fn today(State(state): State<AppState>, visitor: Visitor) -> Response {
    let today = Day::of(state.settings.clock.now());
    show(&state, &visitor, DayPage::first(today)).await
}

/// The slots of a day.
pub(super) async fn one(
    State(state): State<AppState>,
    Segment(day): Segment,
    Query(parameters): Query<HashMap<String, String>>,
    visitor: Visitor,
) -> Response {
    let Ok(day) = Day::parse(&day) else { return problem::page(&visitor, &NO_SUCH_DAY) };
    match DayPage::parse(day, parameters.get("page").map_or("1", String::as_str)) {
        Some(page) => show(&state, &visitor, page).await,
        None => problem::page_of(&visitor, &NO_SUCH_PAGE, Destination::day(day)),
    }
}

async fn show(state: &AppState, visitor: &Visitor, page: DayPage) -> Response {
    match content(state, visitor, page, None).await {
        Ok(page) => page.page(visitor).respond(StatusCode::OK, &[]),
        Err(error) => problem::page_of(visitor, &error, Destination::day(page.day())),
    }
}

/// The page that has the slot. If that is not known, the first page of its day.
pub(super) async fn page_of(state: &AppState, slot: &Slot) -> DayPage {
    match state.repository.slots_before(slot).await {
        Ok(before) => DayPage::behind(slot.day, before),
        Err(error) => {
            tracing::warn!(error = ?error.to_string(), "the page of a slot was not found");
            DayPage::first(slot.day)
        }
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
    match content(state, visitor, page_of(state, slot).await, Some(alert)).await {
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
        let login = Destination::Bookings.login();
        return redirect_to(&login, Some(Flash::LogInFirst), &[]);
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
    let here = Destination::Bookings;
    let content = html! {
        @if let Some(flash) = visitor.flash { (notice(flash.text(), None)) }
        h1 { "Your bookings" }
        // Says what has changed; nothing else, so that nothing else is read out.
        p #news.unseen role="status" {}
        p.hint { "Times are in UTC." }
        form id=(FORM) method="post" { (form_fields(&visitor, here)) }
        ol #bookings role="list" data-now=(milliseconds(now)) {
            @for slot in &slots { (slot_item::own(slot, now)) }
        }
        @if slots.is_empty() { p { "You have booked nothing. " a href="/" { "Today's slots" } } }
    };
    Page { title: "Your bookings", visitor: &visitor, email: email.as_ref(), here, content }
        .respond(StatusCode::OK, &[])
}

struct Content {
    title: String,
    email: Option<crate::domain::Email>,
    here: DayPage,
    html: Markup,
}

impl Content {
    fn page<'a>(&'a self, visitor: &'a Visitor) -> Page<'a> {
        Page {
            title: &self.title,
            visitor,
            email: self.email.as_ref(),
            here: Destination::Day(self.here),
            content: self.html.clone(),
        }
    }
}

async fn content(
    state: &AppState,
    visitor: &Visitor,
    page: DayPage,
    alert: Option<Markup>,
) -> Result<Content, ApiError> {
    let slots = slots_of(&*state.repository, page).await?;
    if slots.slots.is_empty() && page.number() > 1 {
        return Err(NO_SUCH_PAGE);
    }
    let day = page.day();
    let here = Destination::Day(page);
    let email = visitor.email(state).await?;
    let user = visitor.identity.map(|identity| identity.user);
    let now = state.settings.clock.now();
    let title = slot_item::long(day);
    let stream = events::path(page, user);
    let beat = events::BEAT.as_millis();
    let html = html! {
        @if let Some(alert) = alert { (alert) }
        @else if let Some(flash) = visitor.flash { (told(flash, &slots.slots)) }
        h1 { time datetime=(day) { (title) } }
        (navigation(day, Day::of(now)))
        @if user.is_none() {
            p.call {
                a href=(here.login()) { "Log in" } " or "
                a href=(here.register()) { "register" }
                " to book."
            }
        }
        p.hint {
            "Times are in UTC. "
            span #live hidden {}
            noscript {
                "This is how it was at " (slot_item::clock(now)) ": reload the page to see what has \
                 changed."
            }
        }
        // Says what has changed; nothing else, so that nothing else is read out.
        p #news.unseen role="status" {}
        form id=(FORM) method="post" { @if user.is_some() { (form_fields(visitor, here)) } }
        (day_list::pages(page, &slots, Place::Above))
        ol #slots role="list" data-events=(stream) data-beat=(beat) data-now=(milliseconds(now)) {
            (day_list::items(&slots, user, now))
        }
        p #none hidden[!slots.slots.is_empty()] { (none(page)) }
        (day_list::pages(page, &slots, Place::Below))
    };
    let mut title = format!("Slots of {title}");
    if page.number() > 1 {
        title = format!("{title}, page {}", page.number());
    }
    Ok(Content { title, email, here: page, html })
}

fn none(page: DayPage) -> &'static str {
    if page.number() > 1 {
        "There are no slots on this page any more."
    } else {
        "There are no slots on this day."
    }
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
        (Flash::LogInFirst | Flash::LoginEnded, _) => html! {},
        (flash, _) => notice(flash.text(), None),
    }
}

fn link(slot: &Slot, text: &str) -> Markup {
    html! { a href={ "#slot-" (slot.id) } { (text) } }
}
