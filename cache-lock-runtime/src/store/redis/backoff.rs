//! The pauses between openings of connections.

use std::time::Duration;

use fastrand::Rng;
use tokio::sync::Notify;

use crate::{
    clock::Instant,
    driver::Driver,
    error::{BackendError, BackendErrorKind},
    mutex::Mutex,
};

/// The upper bound of the first pause. It doubles with each failure.
const SHORTEST: Duration = Duration::from_millis(20);
/// The upper bound of any pause: a server that comes back is found within this time.
const LONGEST: Duration = Duration::from_millis(500);
/// The same where nothing accepts a connection, which costs no server anything: after a restart without
/// its data, holders learn of the loss that much sooner.
const LONGEST_IN_VAIN: Duration = Duration::from_millis(50);

/// After this time without a failure the pauses begin anew.
const MEMORY: Duration = Duration::from_secs(2);

/// Exponential backoff with full jitter (M. Brooker, *Exponential ReconnectBackoff And Jitter*, 2015), shared
/// by all runtimes and callers of a manager.
pub(super) struct ReconnectBackoff {
    state: Mutex<BackoffState>,
    opened: Notify,
}

struct BackoffState {
    /// The last opening failed, or the connection that came of it was of no use.
    failing: Option<BackendError>,
    failures: u32,
    /// Nothing accepted the last connection.
    in_vain: bool,
    failed_at: Instant,
    not_before: Instant,
    random: Rng,
}

impl ReconnectBackoff {
    pub(super) fn new(random: u64) -> Self {
        let start = Instant::from_nanos(0);
        let state = BackoffState {
            failing: None,
            failures: 0,
            in_vain: false,
            failed_at: start,
            not_before: start,
            random: Rng::with_seed(random),
        };
        Self { state: Mutex::new(state), opened: Notify::new() }
    }

    /// Waits until a connection may be opened. While openings fail, each pause ends with one turn.
    pub(super) async fn turn(&self, driver: &Driver) {
        loop {
            let opened = self.opened.notified();
            let Err(due) = self.take_turn(Instant::now()) else { return };
            driver.within(due, opened).await;
        }
    }

    fn take_turn(&self, now: Instant) -> Result<(), Instant> {
        let mut state = self.state.lock();
        if state.failing.is_none() {
            return Ok(());
        }
        if now < state.not_before {
            return Err(state.not_before);
        }
        // The next task may ask before the outcome of this opening is known.
        state.not_before = now + state.pause();
        Ok(())
    }

    /// An opening failed.
    pub(super) fn not_opened(&self, error: &BackendError) {
        let in_vain = error.kind() == BackendErrorKind::Unreachable;
        self.failed_at(Instant::now(), error, in_vain);
    }

    /// The server that an opening led to is of no use.
    pub(super) fn failed(&self, error: &BackendError) {
        self.failed_at(Instant::now(), error, false);
    }

    fn failed_at(&self, now: Instant, error: &BackendError, in_vain: bool) {
        let mut state = self.state.lock();
        state.in_vain = in_vain;
        if state.failed_at + MEMORY <= now {
            state.failures = 0;
        }
        state.failing = Some(error.clone());
        state.failed_at = now;
        state.not_before = now + state.pause();
        state.failures = state.failures.saturating_add(1);
    }

    /// A connection was opened. The failures are remembered for a while: its first answer may be a
    /// refusal.
    pub(super) fn opened(&self) {
        self.state.lock().failing = None;
        self.opened.notify_waiters();
    }

    /// Why there is no connection.
    pub(super) fn reason(&self) -> Option<BackendError> {
        self.state.lock().failing.clone()
    }
}

impl BackoffState {
    fn pause(&mut self) -> Duration {
        let longest = if self.in_vain { LONGEST_IN_VAIN } else { LONGEST };
        let longest = SHORTEST.saturating_mul(1 << self.failures.min(16)).min(longest);
        longest.mul_f64(self.random.f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many openings a server that is gone, or of no use, costs in this time.
    fn openings(span: Duration, callers: u32, of_use: bool) -> u32 {
        let backoff = ReconnectBackoff::new(7);
        let error = BackendError::new(BackendErrorKind::Unreachable, "it is gone");
        let (start, mut passed, mut openings) =
            (Instant::from_nanos(u64::MAX / 4), Duration::ZERO, 0);
        while passed < span {
            let now = start + passed;
            for _ in 0..callers {
                if backoff.take_turn(now).is_ok() {
                    openings += 1;
                    if of_use {
                        backoff.opened();
                    }
                    backoff.failed_at(now, &error, false);
                }
            }
            passed += Duration::from_millis(1);
        }
        openings
    }

    #[test]
    fn failures_cost_tens_of_openings_whatever_asks() {
        for callers in [1, 100] {
            for of_use in [false, true] {
                let openings = openings(Duration::from_secs(8), callers, of_use);
                assert!((16..80).contains(&openings), "{openings} of {callers}, {of_use}");
            }
        }
    }

    #[test]
    fn a_pause_ends_within_its_bound_and_the_failures_are_forgotten() {
        let backoff = ReconnectBackoff::new(7);
        let error = BackendError::new(BackendErrorKind::Unreachable, "it is gone");
        let mut now = Instant::from_nanos(u64::MAX / 4);
        assert_eq!(backoff.take_turn(now), Ok(()));
        for failure in 0..100 {
            let in_vain = failure % 2 == 0;
            backoff.failed_at(now, &error, in_vain);
            if let Err(due) = backoff.take_turn(now) {
                assert!(due < now + (if in_vain { LONGEST_IN_VAIN } else { LONGEST }));
            }
        }
        assert!(backoff.reason().is_some());
        now = now + MEMORY;
        backoff.failed_at(now, &error, false);
        assert!(backoff.take_turn(now + SHORTEST).is_ok());
        backoff.opened();
        assert!(backoff.take_turn(now).is_ok() && backoff.reason().is_none());
    }
}
