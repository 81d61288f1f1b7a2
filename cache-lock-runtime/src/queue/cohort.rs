//! How long the callers of one process may have a lock among themselves.

use std::time::Duration;

use crate::clock::Moment;

/// Hand-overs, while somebody else is known to wait.
const HAND_OVERS: u32 = 128;
/// Time since the server was last asked, while somebody else is known to wait.
const TURN: Duration = Duration::from_millis(10);
/// The same while nobody is known to wait: who waits may not have been able to tell.
const TURN_ALONE: Duration = Duration::from_millis(100);
/// About as often the lock is left free for a moment. Other libraries, and managers that get no
/// pushes, are on no list: they only find a lock that is free when they ask.
///
/// When is drawn for each cohort, evenly from this time, so that one that lasts for a part of it leaves
/// the lock free with that probability. So it is as often, all managers taken together, without
/// anybody having to know when it last was; no cohort lasts for longer than that on purpose. One that
/// has found the lock free need not leave it so.
const UNSHARED: Duration = Duration::from_millis(250);
/// The same for a manager that gets no pushes: it is not told of anybody, and others like it may be
/// most of its fleet.
const UNSHARED_UNTOLD: Duration = Duration::from_millis(50);

/// The sections that run under one lease, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cohort {
    /// When the request was sent that was answered last.
    asked: Moment,
    /// From when on the lock is left free when a section ends.
    aside: Moment,
    hand_overs: u32,
    /// Somebody else is known to wait.
    pub(super) others: bool,
}

/// What comes after a section while a caller of the same process waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The next caller has it.
    Next,
    /// Whoever waits elsewhere has it, else the next caller.
    Pass,
    /// Whoever asks next has it: it is left free for a moment.
    Free,
}

impl Cohort {
    /// `others`: somebody else is known to wait.
    pub(super) fn new(asked: Moment, others: bool, aside: Moment) -> Self {
        Self { asked, aside, hand_overs: 0, others }
    }

    /// When a cohort that begins now leaves the lock free. `told` says that pushes arrive, `found` that
    /// the lock was free; `random` is any number.
    pub(super) fn aside(now: Moment, told: bool, found: bool, random: u64) -> Moment {
        let unshared = match (told, found) {
            (true, true) => return Moment::FAR,
            (true, false) => UNSHARED,
            (false, _) => UNSHARED_UNTOLD,
        };
        now.after(unshared / 1024 * (random % 1024) as u32)
    }

    pub(super) fn asked(&self) -> Moment {
        self.asked
    }

    pub(super) fn turn(&self, now: Moment) -> Turn {
        let asked = self.asked.until(now);
        if self.is_aside(now) {
            Turn::Free
        } else if self.others && (self.hand_overs >= HAND_OVERS || asked >= TURN)
            || asked >= TURN_ALONE
        {
            Turn::Pass
        } else {
            Turn::Next
        }
    }

    /// It is time to leave the lock free.
    pub(super) fn is_aside(&self, now: Moment) -> bool {
        now >= self.aside
    }

    pub(super) fn handed_over(&mut self) {
        self.hand_overs += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Moment {
        Moment::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn is_short_while_others_wait() {
        let mut cohort = Cohort::new(at(1000), true, Moment::FAR);
        assert_eq!(cohort.turn(at(1009)), Turn::Next);
        assert_eq!(cohort.turn(at(1010)), Turn::Pass);
        for _ in 0..HAND_OVERS {
            assert_eq!(cohort.turn(at(1001)), Turn::Next);
            cohort.handed_over();
        }
        assert_eq!(cohort.turn(at(1001)), Turn::Pass);
    }

    #[test]
    fn is_looser_while_nobody_is_known_to_wait() {
        let mut cohort = Cohort::new(at(1000), false, Moment::FAR);
        for _ in 0..10 * HAND_OVERS {
            cohort.handed_over();
        }
        assert_eq!(cohort.turn(at(1099)), Turn::Next);
        assert_eq!(cohort.turn(at(1100)), Turn::Pass);
    }

    /// The share of cohorts of such a length that leave the lock free.
    fn share(length: u64, told: bool, found: bool) -> f64 {
        let random = std::hash::RandomState::new();
        let free = |salt: &u64| {
            let random = std::hash::BuildHasher::hash_one(&random, salt);
            let aside = Cohort::aside(at(1000), told, found, random);
            Cohort::new(at(1000), false, aside).turn(at(1000 + length)) == Turn::Free
        };
        (0..10_000).filter(free).count() as f64 / 10_000.0
    }

    #[test]
    fn leaves_the_lock_free_as_often_however_long_cohorts_are() {
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
