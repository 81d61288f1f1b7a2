use std::fmt;

use cache_lock::{LockKeyPart, PartWriter};
use serde::{Deserialize, Serialize, Serializer};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime, UtcOffset};
use uuid::Uuid;

use super::{Day, FieldError, FieldErrors, UserId};

const LONGEST_TITLE: usize = 100;
const LONGEST_SLOT: Duration = Duration::hours(24);

/// Names a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SlotId(pub Uuid);

impl SlotId {
    /// A new one.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// Reads one: a UUID with its hyphens.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // A slot has one URL: no braces, no `urn:uuid:`.
        (text.len() == 36).then(|| Uuid::try_parse(text).ok()).flatten().map(Self)
    }
}

impl fmt::Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl LockKeyPart for SlotId {
    fn write_part(&self, part: &mut PartWriter<'_>) {
        self.0.write_part(part);
    }
}

/// What a slot is called: 1 to 100 characters, none of them a control character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Title(String);

impl Title {
    /// Reads a title.
    ///
    /// # Errors
    /// A [`FieldError`] of the field `title`.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let text = text.trim();
        let length = text.chars().count();
        if length == 0 || length > LONGEST_TITLE {
            return Err(FieldError::new("title", "must have 1 to 100 characters"));
        }
        if text.chars().any(char::is_control) {
            return Err(FieldError::new("title", "must not have control characters"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The title, if it has no characters that are not seen, or turn the text around: two titles
    /// could look the same, or one like another. Joiners are left, as scripts and emoji need them.
    ///
    /// Titles that were kept before this was refused can still be read.
    fn shown_as_it_is(self) -> Result<Self, FieldError> {
        let hidden = |c: char| {
            matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
                || ('\u{2028}'..='\u{202e}').contains(&c)
                || ('\u{2060}'..='\u{206f}').contains(&c)
        };
        if self.0.chars().any(hidden) {
            return Err(FieldError::new("title", "must not have invisible characters"));
        }
        Ok(self)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Who has a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booking {
    /// Its owner.
    pub user: UserId,
    /// Since when.
    pub at: OffsetDateTime,
    /// The fencing token of the lock under which it was booked.
    pub token: i64,
}

/// Something that one user can book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Names it.
    pub id: SlotId,
    /// What it is.
    pub title: Title,
    /// The day on which it starts.
    pub day: Day,
    /// When it starts, in UTC.
    pub starts: OffsetDateTime,
    /// When it ends, in UTC.
    pub ends: OffsetDateTime,
    /// Who has it, if somebody has.
    pub booking: Option<Booking>,
}

impl Slot {
    /// Whether `user` has it.
    #[must_use]
    pub fn is_booked_by(&self, user: UserId) -> bool {
        self.booking.as_ref().is_some_and(|booking| booking.user == user)
    }

    /// Where it stands among all slots.
    #[must_use]
    pub fn position(&self) -> (OffsetDateTime, SlotId) {
        (self.starts, self.id)
    }
}

/// A slot to be created.
#[derive(Debug, Clone)]
pub struct NewSlot {
    /// What it is.
    pub title: Title,
    /// When it starts.
    pub starts: OffsetDateTime,
    /// When it ends.
    pub ends: OffsetDateTime,
}

impl NewSlot {
    /// Reads what a request says. Times are in RFC 3339, `2027-01-31T09:00:00Z`.
    ///
    /// # Errors
    /// Each field that is wrong.
    pub fn parse(
        title: &str,
        starts: &str,
        ends: &str,
        window: Window,
    ) -> Result<Self, Vec<FieldError>> {
        let mut errors = FieldErrors::default();
        let title = errors.take(Title::parse(title).and_then(Title::shown_as_it_is));
        let starts = errors.take(moment("starts", starts));
        let ends = errors.take(moment("ends", ends));
        if let (Some(starts), Some(ends)) = (starts, ends) {
            if let Err(message) = window.check(starts) {
                errors.push(FieldError::new("starts", message));
            }
            if ends <= starts || ends - starts > LONGEST_SLOT {
                errors.push(FieldError::new("ends", "must be after `starts`, by 24 hours at most"));
            }
        }
        let errors = errors.into_vec();
        match (title, starts, ends) {
            (Some(title), Some(starts), Some(ends)) if errors.is_empty() => {
                Ok(Self { title, starts, ends })
            }
            _ => Err(errors),
        }
    }

    /// The slot, with a new id.
    #[must_use]
    pub fn into_slot(self) -> Slot {
        self.with_id(SlotId::random())
    }

    /// The slot, with this id.
    #[must_use]
    pub fn with_id(self, id: SlotId) -> Slot {
        let Self { title, starts, ends } = self;
        Slot { id, title, day: Day::of(starts), starts, ends, booking: None }
    }

    /// Whether it says what `slot` was created of.
    #[must_use]
    pub fn describes(&self, slot: &Slot) -> bool {
        self.title == slot.title && self.starts == slot.starts && self.ends == slot.ends
    }
}

/// When a slot may start: after `now`, and not later than the horizon.
#[derive(Debug, Clone, Copy)]
pub struct Window(Option<(OffsetDateTime, Duration)>);

impl Window {
    /// At any time.
    pub const ALWAYS: Self = Self(None);

    /// After `now`, by `horizon` at most.
    #[must_use]
    pub fn ahead_of(now: OffsetDateTime, horizon: Duration) -> Self {
        Self(Some((now, horizon)))
    }

    fn check(self, starts: OffsetDateTime) -> Result<(), String> {
        match self.0 {
            Some((now, _)) if starts <= now => Err("must lie ahead".to_owned()),
            Some((now, horizon)) if starts - now > horizon => {
                Err(format!("must lie ahead by {} days at most", horizon.whole_days()))
            }
            _ => Ok(()),
        }
    }
}

/// A time to the second, in UTC.
fn moment(field: &'static str, text: &str) -> Result<OffsetDateTime, FieldError> {
    let parsed = OffsetDateTime::parse(text, &Rfc3339).ok();
    parsed
        .and_then(|time| time.checked_to_offset(UtcOffset::UTC))
        .and_then(|time| time.replace_nanosecond(0).ok())
        .filter(|time| (1970..=9998).contains(&time.year()))
        .ok_or_else(|| FieldError::new(field, "must be a time such as 2027-01-31T09:00:00Z"))
}

/// A time in RFC 3339, as JSON has it.
///
/// # Errors
/// Those of the serializer.
pub(crate) fn rfc3339<S: Serializer>(
    time: &OffsetDateTime,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&time.format(&Rfc3339).map_err(serde::ser::Error::custom)?)
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;
    use time::macros::datetime;

    use super::{NewSlot, SlotId, Title, Window};

    const NOW: OffsetDateTime = datetime!(2027-12-31 23:59:59 UTC);

    fn ahead() -> Window {
        Window::ahead_of(NOW, time::Duration::days(366))
    }

    #[test]
    fn all_fields_that_are_wrong_are_named() {
        let errors =
            NewSlot::parse("", "tomorrow", "2999-01-01", ahead()).expect_err("nothing is right");
        let fields: Vec<_> = errors.iter().map(|error| error.field).collect();
        assert_eq!(fields, ["title", "starts", "ends"]);
    }

    #[test]
    fn a_slot_lies_ahead_and_ends_after_it_starts() {
        for (starts, ends, field) in [
            ("2027-12-31T23:59:59Z", "2028-01-01T10:00:00Z", "starts"),
            ("2028-01-01T09:00:00Z", "2028-01-01T09:00:00Z", "ends"),
            ("2028-01-01T09:00:00Z", "2028-01-02T09:00:01Z", "ends"),
            ("2029-01-01T00:00:00Z", "2029-01-01T01:00:00Z", "starts"),
        ] {
            let errors = NewSlot::parse("Yoga", starts, ends, ahead()).expect_err("it is wrong");
            assert_eq!(errors[0].field, field, "{errors:?}");
        }
        assert!(
            NewSlot::parse("Yoga", "2028-01-01T00:00:00Z", "2028-01-01T01:00:00Z", ahead()).is_ok()
        );
        let slot =
            NewSlot::parse("Yoga", "2028-06-01T01:00:00+02:00", "2028-06-01T00:00:00Z", ahead());
        let slot = slot.expect("it is right").into_slot();
        assert_eq!(slot.day.to_string(), "2028-05-31", "the day is that of UTC");
    }

    #[test]
    fn a_title_is_what_it_looks_like() {
        let new = |title: &str| {
            NewSlot::parse(title, "2028-01-01T09:00:00Z", "2028-01-01T10:00:00Z", ahead())
        };
        for hidden in ["Yo\u{200b}ga", "\u{202e}agoY", "Yoga\u{2066}", "Yo\u{ad}ga", "a\u{2028}b"] {
            assert_eq!(new(hidden).expect_err("it is refused")[0].field, "title", "{hidden:?}");
            assert!(Title::parse(hidden).is_ok(), "one that is kept can be read");
        }
        for shown in ["Yoga", "\u{1f469}\u{200d}\u{1f4bb}", "\u{645}\u{6cc}\u{200c}\u{62e}"] {
            assert!(new(shown).is_ok(), "{shown:?}");
        }
    }

    #[test]
    fn a_title_is_one_line_of_text() {
        assert_eq!(
            Title::parse("  Yoga ").map(|title| title.as_str().to_owned()),
            Ok("Yoga".into())
        );
        for wrong in ["", "  ", "two\nlines", "bell\u{7}", &"x".repeat(101)] {
            assert!(Title::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_id_has_one_spelling() {
        let id = SlotId::random().to_string();
        assert!(SlotId::parse(&id).is_some());
        for wrong in
            [id.replace('-', ""), format!("{{{id}}}"), format!("urn:uuid:{id}"), String::new()]
        {
            assert!(SlotId::parse(&wrong).is_none(), "{wrong:?}");
        }
    }
}
