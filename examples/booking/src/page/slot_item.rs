//! A slot in the list, on the page and in the stream that keeps the page up to date.

use maud::{Markup, html};
use time::format_description::StaticFormatDescription;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

use crate::domain::{Day, Slot, UserId};

const LONG: StaticFormatDescription =
    format_description!("[weekday], [day padding:none] [month repr:long] [year]");
const CLOCK: StaticFormatDescription = format_description!("[hour]:[minute]");

/// The form whose buttons are those of all slots: so a slot in the stream has no secret in it.
pub(super) const FORM: &str = "actions";

/// How a slot looks to somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Yours,
    Taken,
    Begun,
    YoursBegun,
}

impl State {
    fn of(slot: &Slot, viewer: Option<UserId>, now: OffsetDateTime) -> Self {
        let yours = viewer.is_some_and(|viewer| slot.is_booked_by(viewer));
        match (slot.starts <= now, yours) {
            (true, true) => Self::YoursBegun,
            (true, false) => Self::Begun,
            (false, true) => Self::Yours,
            (false, false) if slot.booking.is_some() => Self::Taken,
            (false, false) => Self::Free,
        }
    }

    /// For the style.
    fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Yours => "yours",
            Self::Taken => "taken",
            Self::Begun | Self::YoursBegun => "begun",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Free => "Free",
            Self::Yours => "Yours",
            Self::Taken => "Taken",
            Self::Begun => "Has begun",
            Self::YoursBegun => "Yours, has begun",
        }
    }

    /// The state once the slot has begun, which the script shows by itself if the service is silent.
    fn begun(self) -> Self {
        match self {
            Self::Yours | Self::YoursBegun => Self::YoursBegun,
            Self::Free | Self::Taken | Self::Begun => Self::Begun,
        }
    }
}

/// The slot as one item of the list, as it is `now`. Two that look alike are alike to the byte.
pub(super) fn item(slot: &Slot, viewer: Option<UserId>, now: OffsetDateTime) -> Markup {
    let state = State::of(slot, viewer, now);
    let label = label(slot);
    html! {
        li.slot.(state.name()) id={ "slot-" (slot.id) } data-state=(state.text()) data-label=(label)
            data-starts=(milliseconds(slot.starts)) data-begun=(state.begun().text())
        {
            h2 tabindex="-1" { (slot.title.as_str()) }
            div.details {
                p.when { (times(slot)) }
                p.state { (state.text()) }
            }
            @match state {
                State::Free if viewer.is_some() => (button(slot, "book", "Book", &label)),
                State::Yours => (button(slot, "cancel", "Cancel", &label)),
                _ => {}
            }
        }
    }
}

/// A slot of the user's own, among those of other days.
pub(super) fn own(slot: &Slot, now: OffsetDateTime) -> Markup {
    let state = State::of(slot, slot.booking.as_ref().map(|booking| booking.user), now);
    let day = long(slot.day);
    let label = format!("{}, {day}", label(slot));
    html! {
        li.slot.(state.name()) id={ "slot-" (slot.id) } data-state=(state.text()) data-label=(label)
            data-starts=(milliseconds(slot.starts)) data-begun=(state.begun().text())
        {
            h2 tabindex="-1" { (slot.title.as_str()) }
            div.details {
                p.when {
                    // The day can have several pages.
                    a href={ "/page/slots/" (slot.id) } { (day) } ", "
                    (times(slot))
                }
                p.state hidden[state == State::Yours] { (state.text()) }
            }
            @if state == State::Yours { (button(slot, "cancel", "Cancel", &label)) }
        }
    }
}

/// A button that does something with a slot. `shown` is what it says; its whole name, which a screen
/// reader reads in a list of buttons, says with which slot.
pub(super) fn button(slot: &Slot, action: &str, shown: &str, label: &str) -> Markup {
    html! {
        button.(action) form=(FORM) formaction={ "/page/slots/" (slot.id) "/" (action) } {
            (shown) span.unseen { " " (label) }
        }
    }
}

/// What a slot is called where it stands alone.
pub(super) fn label(slot: &Slot) -> String {
    format!("{}, {}", slot.title.as_str(), clock(slot.starts))
}

/// A day in words.
pub(super) fn long(day: Day) -> String {
    day.date().format(LONG).unwrap_or_else(|_| day.to_string())
}

/// From when to when. A slot may end on the day after, and take 24 hours.
fn times(slot: &Slot) -> Markup {
    html! {
        (time(slot.starts)) "–" (time(slot.ends))
        @if Day::of(slot.ends) != slot.day { " the next day" }
    }
}

fn time(time: OffsetDateTime) -> Markup {
    let exact = time.format(&Rfc3339).unwrap_or_default();
    html! { time datetime=(exact) { (clock(time)) } }
}

/// A time of day, in UTC.
pub(super) fn clock(time: OffsetDateTime) -> String {
    time.to_offset(UtcOffset::UTC).format(CLOCK).unwrap_or_default()
}

/// A time for the script: milliseconds of the Unix epoch.
pub(super) fn milliseconds(time: OffsetDateTime) -> i128 {
    time.unix_timestamp_nanos() / 1_000_000
}
