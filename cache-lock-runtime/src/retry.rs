//! How a waiter passes the time until its next try.
//!
//! This is the seam for the wait strategy: an acquisition asks, learns that the lock is busy, and
//! calls [`Pace::pause`]; how it is woken is decided here.

use std::time::Duration;

use crate::{clock::Moment, driver::Driver};

/// The first pause is short, since most critical sections are.
const SHORTEST: Duration = Duration::from_millis(2);
/// The longest pause bounds how late a waiter notices a release.
const LONGEST: Duration = Duration::from_millis(64);

/// Polling with exponential back-off and jitter: each pause is drawn from the upper half of a
/// range that doubles (M. Brooker, *Exponential Backoff And Jitter*, 2015, there "equal jitter").
#[derive(Debug)]
pub(crate) struct Pace {
    next: Duration,
    random: u64,
}

impl Pace {
    pub(crate) fn new(random: u64) -> Self {
        // The state of the generator must not be zero.
        Self { next: SHORTEST, random: random | 1 }
    }

    /// Waits before the next try, never beyond `until`, nor much beyond the end of the holder's
    /// lease.
    pub(crate) async fn pause(
        &mut self,
        driver: &Driver,
        remaining: Option<Duration>,
        until: Moment,
    ) {
        let mut pause = self.next_pause();
        if let Some(remaining) = remaining {
            // The millisecond that the server's count may lag behind.
            pause = pause.min(remaining + Duration::from_millis(1));
        }
        driver.sleep_until(Moment::now().after(pause).min(until)).await;
    }

    fn next_pause(&mut self) -> Duration {
        // Xorshift (G. Marsaglia, 2003): waiters only have to fall out of step.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let half = self.next / 2;
        let spread = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.next = (self.next * 2).min(LONGEST);
        half + Duration::from_nanos(self.random % spread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_differ() {
        let mut pace = Pace::new(0);
        let pauses: Vec<_> = (0..100).map(|_| pace.next_pause()).collect();
        assert!(pauses[0] >= SHORTEST / 2 && pauses[0] < SHORTEST);
        assert!(pauses[10..].iter().all(|&pause| pause >= LONGEST / 2 && pause < LONGEST));
        let distinct: std::collections::HashSet<_> = pauses.iter().collect();
        assert!(distinct.len() > 90);
    }
}
