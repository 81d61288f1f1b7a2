//! How long the callers of one process may have a lock among themselves (lock cohorting: Dice, Marathe,
//! Shavit, 2012).

use std::time::Duration;

use crate::clock::Instant;

/// Hand-overs while another manager is known to wait.
const HAND_OVERS: u32 = 128;
/// Time since the server was last asked while another manager is known to wait.
const TURN: Duration = Duration::from_millis(10);
/// The same while no other manager is known to wait: one that waits may not have been able to tell.
const TURN_ALONE: Duration = Duration::from_millis(100);
/// Each cohort draws its yield time uniformly from this range, so the fleet yields about four times a second
/// without shared state. Other libraries, and managers without pushes, are on no list: they get the lock
/// only if it is free when they ask.
///
/// A cohort that found the lock free does not yield: the others could have found it free, too.
const YIELD_WITHIN: Duration = Duration::from_millis(250);
/// The same for a manager without pushes: it learns of no waiter, and most of its fleet may be like it.
const YIELD_WITHIN_UNTOLD: Duration = Duration::from_millis(50);

/// The sections that run under one lease, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cohort {
    /// When the request was sent that was answered last.
    asked: Instant,
    /// From when on the end of a section yields the lock.
    yields_from: Instant,
    hand_overs: u32,
    /// Another manager is known to wait.
    pub(super) others: bool,
}

/// What comes after a section while a caller of the same process waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Succession {
    /// The next caller has it.
    HandOver,
    /// The first of the waiting list has it; if the list is empty, the next caller.
    Pass,
    /// The lock is left free for a moment, for the first that asks.
    Yield,
}

impl Cohort {
    /// `others`: another manager is known to wait.
    pub(super) fn new(asked: Instant, others: bool, yields_from: Instant) -> Self {
        Self { asked, yields_from, hand_overs: 0, others }
    }

    /// Draws the time from which a cohort that begins now yields. `told`: pushes arrive. `found`: the lock
    /// was free. `random`: any number.
    pub(super) fn draw_yield(now: Instant, told: bool, found: bool, random: u64) -> Instant {
        let within = match (told, found) {
            (true, true) => return Instant::FAR,
            (true, false) => YIELD_WITHIN,
            (false, _) => YIELD_WITHIN_UNTOLD,
        };
        now + within / 1024 * (random % 1024) as u32
    }

    pub(super) fn asked(&self) -> Instant {
        self.asked
    }

    pub(super) fn succession(&self, now: Instant) -> Succession {
        let asked = now - self.asked;
        if self.yields(now) {
            Succession::Yield
        } else if self.others && (self.hand_overs >= HAND_OVERS || asked >= TURN)
            || asked >= TURN_ALONE
        {
            Succession::Pass
        } else {
            Succession::HandOver
        }
    }

    /// The end of a section yields the lock.
    pub(super) fn yields(&self, now: Instant) -> bool {
        now >= self.yields_from
    }

    pub(super) fn handed_over(&mut self) {
        self.hand_overs += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn a_cohort_with_known_waiters_is_short() {
        let mut cohort = Cohort::new(at(1000), true, Instant::FAR);
        assert_eq!(cohort.succession(at(1009)), Succession::HandOver);
        assert_eq!(cohort.succession(at(1010)), Succession::Pass);
        for _ in 0..HAND_OVERS {
            assert_eq!(cohort.succession(at(1001)), Succession::HandOver);
            cohort.handed_over();
        }
        assert_eq!(cohort.succession(at(1001)), Succession::Pass);
    }

    #[test]
    fn a_cohort_without_known_waiters_is_longer() {
        let mut cohort = Cohort::new(at(1000), false, Instant::FAR);
        for _ in 0..10 * HAND_OVERS {
            cohort.handed_over();
        }
        assert_eq!(cohort.succession(at(1099)), Succession::HandOver);
        assert_eq!(cohort.succession(at(1100)), Succession::Pass);
    }

    /// The share of cohorts of such a length that yield.
    fn share(length: u64, told: bool, found: bool) -> f64 {
        let random = std::hash::RandomState::new();
        let free = |salt: &u64| {
            let random = std::hash::BuildHasher::hash_one(&random, salt);
            let from = Cohort::draw_yield(at(1000), told, found, random);
            Cohort::new(at(1000), false, from).succession(at(1000 + length)) == Succession::Yield
        };
        (0..10_000).filter(free).count() as f64 / 10_000.0
    }

    #[test]
    fn cohorts_of_any_length_yield_as_often() {
        let is_about = |share: f64, expected: f64| (share / expected - 1.0).abs() < 0.25;
        assert!(is_about(share(10, true, false), 0.04));
        assert!(is_about(share(100, true, false), 0.4));
        assert!(share(250, true, false) == 1.0);
        for found in [false, true] {
            assert!(is_about(share(10, false, found), 0.2));
        }
        assert!(share(1000, true, true) == 0.0, "it was free right before");
    }
}
