//! Where to go after a login.

use std::fmt;

use crate::domain::Day;

const DAYS: &str = "/page/days/";
const BOOKINGS: &str = "/page/bookings";

/// A page of ours. It is made from what a URL says, so it can be nothing else, and nobody is sent
/// elsewhere by a link that begins with our address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Destination {
    /// Today's slots.
    #[default]
    Today,
    /// Those of a day.
    Day(Day),
    /// One's own bookings.
    Bookings,
}

impl Destination {
    /// The slots of a day.
    pub(super) fn day(day: Day) -> Self {
        Self::Day(day)
    }

    /// The page that `path` names; today's if it names none.
    pub(super) fn parse(path: &str) -> Self {
        if path == BOOKINGS {
            return Self::Bookings;
        }
        path.strip_prefix(DAYS).and_then(|day| Day::parse(day).ok()).map_or(Self::Today, Self::Day)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Today => f.write_str("/"),
            Self::Day(day) => write!(f, "{DAYS}{day}"),
            Self::Bookings => f.write_str(BOOKINGS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Destination;

    #[test]
    fn only_pages_of_ours_are_gone_to() {
        let day = "/page/days/2027-01-31";
        assert_eq!(Destination::parse(day).to_string(), day);
        assert_eq!(Destination::parse("/page/bookings").to_string(), "/page/bookings");
        for elsewhere in [
            "",
            "https://evil.example/",
            "//evil.example",
            "/\\evil.example",
            "/page/days/../../evil",
            "/page/days/2027-01-31/../x",
            "/page/days/2027-01-31\r\nSet-Cookie: a=b",
            "javascript:alert(1)",
            "/page/logout",
        ] {
            assert_eq!(Destination::parse(elsewhere).to_string(), "/", "{elsewhere:?}");
        }
    }
}
