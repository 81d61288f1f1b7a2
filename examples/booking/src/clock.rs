//! The time of day, as the service tells it.

use std::time::Instant;

use time::OffsetDateTime;

/// Tells the time. A test sets it, so that nothing depends on the hour at which the test runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock(Option<Setting>);

/// What a clock showed, and when it did.
#[derive(Debug, Clone, Copy)]
struct Setting {
    shown: OffsetDateTime,
    at: Instant,
}

impl Clock {
    /// The clock of the machine.
    #[must_use]
    pub fn system() -> Self {
        Self(None)
    }

    /// A clock that shows `now` at first, and goes on from there.
    #[must_use]
    pub fn set_to(now: OffsetDateTime) -> Self {
        Self(Some(Setting { shown: now, at: Instant::now() }))
    }

    /// The time, in UTC.
    #[must_use]
    pub fn now(self) -> OffsetDateTime {
        match self.0 {
            None => OffsetDateTime::now_utc(),
            Some(Setting { shown, at }) => {
                shown.saturating_add(at.elapsed().try_into().unwrap_or(time::Duration::MAX))
            }
        }
    }
}
