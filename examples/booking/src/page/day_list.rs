//! The list of a page of slots, and the links to the pages beside it: on the page, and in the stream
//! that keeps the page up to date.

use maud::{Markup, html};
use time::OffsetDateTime;

use super::destination::Destination;
use super::slot_item;
use crate::domain::{DayPage, UserId};
use crate::error::ApiError;
use crate::events::DaySlots;

/// The error for a page that a day does not have.
pub(super) const NO_SUCH_PAGE: ApiError = ApiError::NotFound("This day has no such page of slots.");

/// Where a pair of links stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Above the list, so that keys reach it before the list.
    Above,
    /// Below the list, at which readers of the list arrive.
    Below,
}

/// The items of the list, as they are `now` to the viewer.
pub(super) fn items(slots: &DaySlots, viewer: Option<UserId>, now: OffsetDateTime) -> Markup {
    html! { @for slot in slots.slots.iter() { (slot_item::item(slot, viewer, now)) } }
}

/// The links to the pages beside `page`. They are there on each page, and hidden on a single one, so
/// that the stream can show them.
pub(super) fn pages(page: DayPage, slots: &DaySlots, place: Place) -> Markup {
    let earlier = page.earlier().map(Destination::Day);
    let later = page.later().filter(|_| slots.more).map(Destination::Day);
    let label = match place {
        Place::Above => "Pages of this day",
        Place::Below => "Pages of this day, below the list",
    };
    html! {
        nav.pages aria-label=(label) hidden[earlier.is_none() && later.is_none()] {
            ul role="list" {
                li { @if let Some(earlier) = earlier { a href=(earlier) { "← Earlier" span.unseen { " slots" } } } }
                li { "Page " (page.number()) }
                li { @if let Some(later) = later { a href=(later) { "Later" span.unseen { " slots" } " →" } } }
            }
        }
    }
}
