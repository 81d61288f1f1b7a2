//! How long to wait until the next question, where nobody tells when the lock is free.

use std::time::Duration;

use crate::{clock::Moment, random::Random};

/// The pauses at first: critical sections are mostly short.
const SHORTEST: Duration = Duration::from_micros(400);
const LONGEST: Duration = Duration::from_millis(64);
/// A pause is this part of the wait so far: what it adds to the wait is small beside it.
const PART: u32 = 256;

/// Whose turn is next where the lock is left free for a moment asks after such a pause.
const STANDING_BACK: Duration = Duration::from_millis(4);
/// Who has left it free asks later than that.
const YIELDING: Duration = Duration::from_millis(2);

/// The same for a server that cannot be asked.
const SHORTEST_AFTER_FAILURE: Duration = Duration::from_millis(4);
const PART_AFTER_FAILURE: u32 = 16;

/// A manager that is on the waiting list asks again after what is left of the holder's lease, but
/// within these bounds: a grant that was lost must not cost more than the upper one.
const LISTED: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// The pauses of one wait, each drawn at random, so that waiters fall out of step (M. Brooker,
/// *Exponential Backoff And Jitter*, 2015).
#[derive(Debug)]
pub(crate) struct Pace {
    since: Option<Moment>,
    random: Random,
}

impl Pace {
    pub(crate) fn new(random: u64) -> Self {
        Self { since: None, random: Random::new(random) }
    }

    /// The wait is over.
    pub(crate) fn reset(&mut self) {
        self.since = None;
    }

    /// When to ask again for a lock that another holds for `remaining`, nearly or for ever.
    pub(crate) fn polling(&mut self, now: Moment, remaining: Option<Duration>) -> Moment {
        let pause = (self.waited(now) / PART).clamp(SHORTEST, LONGEST);
        // The millisecond that the server's count may lag behind.
        let end = remaining.map_or(pause, |left| left + Duration::from_millis(1));
        now.after(self.upper_half(pause).min(end))
    }

    pub(crate) fn after_failure(&mut self, now: Moment) -> Moment {
        let pause = (self.waited(now) / PART_AFTER_FAILURE).clamp(SHORTEST_AFTER_FAILURE, LONGEST);
        now.after(self.upper_half(pause))
    }

    /// When to ask again if no push has come.
    pub(crate) fn listed(&mut self, now: Moment, remaining: Option<Duration>) -> Moment {
        let pause = remaining.unwrap_or(LISTED.1).clamp(LISTED.0, LISTED.1);
        now.after(pause + pause / 8 - self.upper_half(pause / 8))
    }

    /// The pause in which those who are on no list may find the lock free.
    pub(crate) fn standing_back(&mut self, now: Moment) -> Moment {
        now.after(self.upper_half(STANDING_BACK))
    }

    /// The pause of who has left the lock free.
    pub(crate) fn yielding(&mut self, now: Moment) -> Moment {
        now.after(STANDING_BACK + self.upper_half(YIELDING))
    }

    fn waited(&mut self, now: Moment) -> Duration {
        self.since.get_or_insert(now).until(now)
    }

    pub(crate) fn random(&mut self) -> u64 {
        self.random.number()
    }

    fn upper_half(&mut self, pause: Duration) -> Duration {
        let half = pause / 2;
        half + self.random.below(half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Moment = Moment::from_nanos(1_000_000_000);

    fn after(start: Moment, due: Moment) -> Duration {
        start.until(due)
    }

    #[test]
    fn polling_slows_down_with_the_wait_and_ends_with_the_lease() {
        let mut pace = Pace::new(0);
        let first = after(START, pace.polling(START, None));
        assert!(first >= SHORTEST / 2 && first < SHORTEST, "{first:?}");
        let later = START.after(Duration::from_secs(8));
        let pause = after(later, pace.polling(later, None));
        assert!(pause >= Duration::from_micros(15_625) && pause < Duration::from_micros(31_250));
        let far = START.after(Duration::from_secs(3600));
        assert!(after(far, pace.polling(far, None)) < LONGEST);
        let left = Some(Duration::from_millis(3));
        assert!(after(far, pace.polling(far, left)) <= Duration::from_millis(4));
        pace.reset();
        assert!(after(far, pace.polling(far, None)) < SHORTEST);
    }

    #[test]
    fn who_is_listed_asks_within_the_bounds() {
        let mut pace = Pace::new(7);
        let mut of = |left: Option<u64>| {
            let left = left.map(Duration::from_millis);
            after(START, pace.listed(START, left)).as_millis()
        };
        for _ in 0..100 {
            assert!((5..6).contains(&of(Some(0))));
            assert!((200..226).contains(&of(Some(200))));
            assert!((1000..1126).contains(&of(Some(60_000))));
            assert!((1000..1126).contains(&of(None)));
        }
    }

    #[test]
    fn pauses_differ() {
        let mut pace = Pace::new(3);
        let pauses: std::collections::HashSet<_> =
            (0..100).map(|_| pace.polling(START, None).as_nanos()).collect();
        assert!(pauses.len() > 90);
    }
}
