use super::Day;

/// Slots of a page.
const LENGTH: usize = 200;

/// The last page there is: a million slots.
const LAST: u32 = 5000;

/// A page of the slots of a day: 200 slots, in the order of their positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DayPage {
    day: Day,
    number: u32,
}

impl DayPage {
    /// Slots of a page.
    pub const LENGTH: usize = LENGTH;

    /// The first page of a day.
    #[must_use]
    pub fn first(day: Day) -> Self {
        Self { day, number: 1 }
    }

    /// Reads the number of a page, `2`. A page has one spelling.
    #[must_use]
    pub fn parse(day: Day, number: &str) -> Option<Self> {
        let read = number.parse().ok().filter(|read| (1..=LAST).contains(read))?;
        (read.to_string() == number).then_some(Self { day, number: read })
    }

    /// The page of a slot that has so many slots of its day before it.
    #[must_use]
    pub fn behind(day: Day, slots: u64) -> Self {
        let number = (slots / LENGTH as u64).saturating_add(1);
        Self { day, number: u32::try_from(number).unwrap_or(LAST).min(LAST) }
    }

    /// The day.
    #[must_use]
    pub fn day(self) -> Day {
        self.day
    }

    /// The page's number; the first page has 1.
    #[must_use]
    pub fn number(self) -> u32 {
        self.number
    }

    /// Slots of the day before this page.
    #[must_use]
    pub fn skipped(self) -> usize {
        (self.number as usize - 1) * LENGTH
    }

    /// The page before.
    #[must_use]
    pub fn earlier(self) -> Option<Self> {
        (self.number > 1).then(|| Self { number: self.number - 1, ..self })
    }

    /// The page after.
    #[must_use]
    pub fn later(self) -> Option<Self> {
        (self.number < LAST).then(|| Self { number: self.number + 1, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::{Day, DayPage, LAST};

    fn day() -> Day {
        Day::parse("2028-02-29").expect("it is a day")
    }

    #[test]
    fn a_page_has_one_spelling() {
        assert_eq!(DayPage::parse(day(), "1"), Some(DayPage::first(day())));
        for wrong in ["", "0", "-1", "+1", "01", "1.0", " 1", "5001", "4294967297", "x"] {
            assert_eq!(DayPage::parse(day(), wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn each_slot_is_on_one_page() {
        for (before, number) in [(0, 1), (199, 1), (200, 2), (399, 2), (400, 3), (u64::MAX, LAST)] {
            assert_eq!(DayPage::behind(day(), before).number(), number, "{before}");
        }
        let second = DayPage::behind(day(), 200);
        assert_eq!(second.skipped(), 200);
        assert_eq!(second.earlier(), Some(DayPage::first(day())));
        assert_eq!(second.earlier().and_then(DayPage::later), Some(second));
        assert_eq!(DayPage::first(day()).earlier(), None);
        assert_eq!(DayPage::behind(day(), u64::MAX).later(), None);
    }
}
