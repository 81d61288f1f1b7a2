//! The pause before the next request for a lock that is taken, or after one that failed.

use std::time::Duration;

use fastrand::Rng;

use crate::clock::Instant;

/// The pauses at first: critical sections are mostly short.
const SHORTEST: Duration = Duration::from_micros(400);
const LONGEST: Duration = Duration::from_millis(64);
/// A pause is this part of the wait so far: what it adds to the wait is small beside it.
const PART: u32 = 256;

/// When a holder yields, the first of the waiting list asks after such a pause.
const IN_YIELD: Duration = Duration::from_millis(4);
/// The manager that yielded asks later than that.
const AFTER_YIELD: Duration = Duration::from_millis(2);

/// The same for a server that cannot be asked.
const SHORTEST_AFTER_FAILURE: Duration = Duration::from_millis(4);
const PART_AFTER_FAILURE: u32 = 16;

/// A manager on the waiting list asks again when the holder's lease is over, but within these bounds: a lost
/// grant must not cost more than the upper one.
const LISTED: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// The pauses of one wait, each drawn at random, so that waiters fall out of step (M. Brooker,
/// *Exponential Backoff And Jitter*, 2015).
#[derive(Debug)]
pub(crate) struct Backoff {
    since: Option<Instant>,
    random: Rng,
}

impl Backoff {
    pub(crate) fn new(random: u64) -> Self {
        Self { since: None, random: Rng::with_seed(random) }
    }

    /// The wait is over.
    pub(crate) fn reset(&mut self) {
        self.since = None;
    }

    /// When to ask again for a lock whose holder has a lease of `remaining`, or one without an end.
    pub(crate) fn polling(&mut self, now: Instant, remaining: Option<Duration>) -> Instant {
        let pause = (self.waited(now) / PART).clamp(SHORTEST, LONGEST);
        // The millisecond that the server's count may lag behind.
        let end = remaining.map_or(pause, |left| left + Duration::from_millis(1));
        now + self.upper_half(pause).min(end)
    }

    pub(crate) fn after_failure(&mut self, now: Instant) -> Instant {
        let pause = (self.waited(now) / PART_AFTER_FAILURE).clamp(SHORTEST_AFTER_FAILURE, LONGEST);
        now + self.upper_half(pause)
    }

    /// When to ask again if no push has come.
    pub(crate) fn listed(&mut self, now: Instant, remaining: Option<Duration>) -> Instant {
        let pause = remaining.unwrap_or(LISTED.1).clamp(LISTED.0, LISTED.1);
        now + (pause + pause / 8 - self.upper_half(pause / 8))
    }

    /// When the first of the waiting list asks after a yield. Until then callers on no list may find the lock
    /// free.
    pub(crate) fn in_yield(&mut self, now: Instant) -> Instant {
        now + self.upper_half(IN_YIELD)
    }

    /// When the manager that yielded may ask.
    pub(crate) fn after_yield(&mut self, now: Instant) -> Instant {
        now + (IN_YIELD + self.upper_half(AFTER_YIELD))
    }

    fn waited(&mut self, now: Instant) -> Duration {
        now - *self.since.get_or_insert(now)
    }

    pub(crate) fn random(&mut self) -> u64 {
        self.random.u64(..)
    }

    fn upper_half(&mut self, pause: Duration) -> Duration {
        let half = pause / 2;
        half + half.mul_f64(self.random.f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_nanos(1_000_000_000);

    fn after(start: Instant, due: Instant) -> Duration {
        due - start
    }

    #[test]
    fn polling_slows_down_with_the_wait_and_ends_with_the_lease() {
        let mut backoff = Backoff::new(0);
        let first = after(START, backoff.polling(START, None));
        assert!(first >= SHORTEST / 2 && first < SHORTEST, "{first:?}");
        let later = START + Duration::from_secs(8);
        let pause = after(later, backoff.polling(later, None));
        assert!(pause >= Duration::from_micros(15_625) && pause < Duration::from_micros(31_250));
        let far = START + Duration::from_secs(3600);
        assert!(after(far, backoff.polling(far, None)) < LONGEST);
        let left = Some(Duration::from_millis(3));
        assert!(after(far, backoff.polling(far, left)) <= Duration::from_millis(4));
        backoff.reset();
        assert!(after(far, backoff.polling(far, None)) < SHORTEST);
    }

    #[test]
    fn a_listed_manager_asks_within_the_bounds() {
        let mut backoff = Backoff::new(7);
        let mut of = |left: Option<u64>| {
            let left = left.map(Duration::from_millis);
            after(START, backoff.listed(START, left)).as_millis()
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
        let mut backoff = Backoff::new(3);
        let pauses: std::collections::HashSet<_> =
            (0..100).map(|_| backoff.polling(START, None).as_nanos()).collect();
        assert!(pauses.len() > 90);
    }
}
