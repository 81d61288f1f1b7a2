//! Where to go after a login.

use std::fmt;

use crate::domain::{Day, DayPage};

const DAYS: &str = "/page/days/";
const BOOKINGS: &str = "/page/bookings";

/// A page of ours. It is made from what a URL says, so it can be nothing else, and nobody is sent
/// elsewhere by a link that begins with our address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Destination {
    /// Today's slots.
    #[default]
    Today,
    /// A page of the slots of a day.
    Day(DayPage),
    /// One's own bookings.
    Bookings,
}

impl Destination {
    /// The first slots of a day.
    pub(super) fn day(day: Day) -> Self {
        Self::Day(DayPage::first(day))
    }

    /// The page that `path` names; today's if it names none.
    pub(super) fn parse(path: &str) -> Self {
        if path == BOOKINGS {
            return Self::Bookings;
        }
        path.strip_prefix(DAYS).and_then(page).map_or(Self::Today, Self::Day)
    }

    /// The form of a login that leads here.
    pub(super) fn login(self) -> String {
        format!("/page/login?next={self}")
    }

    /// The form of a registration that leads here.
    pub(super) fn register(self) -> String {
        format!("/page/register?next={self}")
    }
}

/// Reads `2027-01-31` or `2027-01-31?page=2`.
fn page(text: &str) -> Option<DayPage> {
    let (day, number) = text.split_once("?page=").unwrap_or((text, "1"));
    DayPage::parse(Day::parse(day).ok()?, number)
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Today => f.write_str("/"),
            Self::Day(page) if page.number() == 1 => write!(f, "{DAYS}{}", page.day()),
            Self::Day(page) => write!(f, "{DAYS}{}?page={}", page.day(), page.number()),
            Self::Bookings => f.write_str(BOOKINGS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Destination;

    #[test]
    fn only_pages_of_ours_are_gone_to() {
        for ours in ["/page/days/2027-01-31", "/page/days/2027-01-31?page=2", "/page/bookings"] {
            assert_eq!(Destination::parse(ours).to_string(), ours);
        }
        for elsewhere in [
            "",
            "https://evil.example/",
            "//evil.example",
            "/\\evil.example",
            "/page/days/../../evil",
            "/page/days/2027-01-31/../x",
            "/page/days/2027-01-31\r\nSet-Cookie: a=b",
            "/page/days/2027-01-31?page=0",
            "/page/days/2027-01-31?page=2&user=x",
            "/page/days/2027-01-31?page=//evil.example",
            "/page/days/2027-01-31?page=2\r\nSet-Cookie: a=b",
            "/page/days/2027-01-31?next=//evil.example",
            "javascript:alert(1)",
            "/page/logout",
        ] {
            assert_eq!(Destination::parse(elsewhere).to_string(), "/", "{elsewhere:?}");
        }
    }
}
