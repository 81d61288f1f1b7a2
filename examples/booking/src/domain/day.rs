use std::fmt;

use serde::{Serialize, Serializer};
use time::format_description::StaticFormatDescription;
use time::macros::format_description;
use time::{Date, OffsetDateTime};

use super::FieldError;

const FORMAT: StaticFormatDescription = format_description!("[year]-[month]-[day]");

/// A day, in UTC, written `2027-01-31`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(Date);

impl Day {
    /// Reads `2027-01-31`.
    ///
    /// # Errors
    /// A [`FieldError`] of the field `day`.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        // The format takes signs and more digits too.
        let parsed = (text.len() == 10).then(|| Date::parse(text, FORMAT).ok()).flatten();
        parsed
            .filter(|date| date.year() >= 1970)
            .map(Self)
            .ok_or_else(|| FieldError::new("day", "must be a date such as 2027-01-31"))
    }

    /// The day on which `time` is.
    #[must_use]
    pub fn of(time: OffsetDateTime) -> Self {
        Self(time.to_offset(time::UtcOffset::UTC).date())
    }

    /// The day after; the last day there is stays where it is.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.next_day().unwrap_or(self.0))
    }

    /// The day before; the first day there is stays where it is.
    #[must_use]
    pub fn previous(self) -> Self {
        Self(self.0.previous_day().unwrap_or(self.0))
    }

    /// How many days it is after `other`; negative before it.
    #[must_use]
    pub fn days_after(self, other: Self) -> i64 {
        (self.0 - other.0).whole_days()
    }

    /// The date.
    #[must_use]
    pub fn date(self) -> Date {
        self.0
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.0.to_calendar_date();
        write!(f, "{year:04}-{:02}-{day:02}", u8::from(month))
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Day;

    #[test]
    fn a_day_is_written_as_it_is_read_and_nothing_else_is_one() {
        for text in ["2027-01-31", "2028-02-29", "1970-01-01"] {
            assert_eq!(Day::parse(text).map(|day| day.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["", "2027-1-31", "2027-02-29", "2027-13-01", "+027-01-01", "1969-12-31", "2027-01-31 "]
        {
            assert!(Day::parse(text).is_err(), "{text:?}");
        }
    }
}
