//! Where to go after a login.

use std::fmt;

use crate::domain::Day;

const DAYS: &str = "/page/days/";

/// A page of ours: today's slots, or those of a day. It is made from what a URL says, so it can be
/// nothing else, and nobody is sent elsewhere by a link that begins with our address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Destination(Option<Day>);

impl Destination {
    /// The slots of a day.
    pub(super) fn day(day: Day) -> Self {
        Self(Some(day))
    }

    /// The page that `path` names; today's if it names none.
    pub(super) fn parse(path: &str) -> Self {
        Self(path.strip_prefix(DAYS).and_then(|day| Day::parse(day).ok()))
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(day) => write!(f, "{DAYS}{day}"),
            None => f.write_str("/"),
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
