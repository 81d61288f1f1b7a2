//! How long the callers of one process may have a lock among themselves.

use std::time::Duration;

use crate::clock::Moment;

/// Hand-overs, while somebody else is known to wait.
const HAND_OVERS: u32 = 128;
/// Time since the server was last asked, while somebody else is known to wait.
const TURN: Duration = Duration::from_millis(10);
/// The same while nobody is known to wait: who waits may not have been able to tell.
const TURN_ALONE: Duration = Duration::from_millis(100);
/// Time since the lock was last free, while nobody is known to wait. Other libraries, and managers
/// that get no pushes, are on no list: they only find a lock that is free when they ask.
const UNSHARED: Duration = Duration::from_millis(250);
/// The same for a manager that gets no pushes: it is not told of anybody, and others like it may be
/// most of its fleet.
const UNSHARED_UNTOLD: Duration = Duration::from_millis(25);

/// The sections that run under one lease, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cohort {
    /// When the lock was taken that had been free, or granted.
    began: Moment,
    /// When the request was sent that was answered last.
    asked: Moment,
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
    /// Whoever asks next has it.
    Free,
}

impl Cohort {
    /// `began` is that of the cohort before, if it ended in a pass that left the lock here.
    pub(super) fn new(asked: Moment, began: Option<Moment>, others: bool) -> Self {
        Self { began: began.unwrap_or(asked), asked, hand_overs: 0, others }
    }

    pub(super) fn began(&self) -> Moment {
        self.began
    }

    pub(super) fn asked(&self) -> Moment {
        self.asked
    }

    /// `told` says that pushes arrive.
    pub(super) fn turn(&self, now: Moment, told: bool) -> Turn {
        let asked = self.asked.until(now);
        let unshared = if told { UNSHARED } else { UNSHARED_UNTOLD };
        let is_over = if self.others {
            self.hand_overs >= HAND_OVERS || asked >= TURN
        } else if self.began.until(now) >= unshared {
            return Turn::Free;
        } else {
            asked >= TURN_ALONE
        };
        if is_over { Turn::Pass } else { Turn::Next }
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
        let mut cohort = Cohort::new(at(1000), None, true);
        assert_eq!(cohort.turn(at(1009), true), Turn::Next);
        assert_eq!(cohort.turn(at(1010), true), Turn::Pass);
        assert_eq!(cohort.turn(at(9999), true), Turn::Pass);
        for _ in 0..HAND_OVERS {
            assert_eq!(cohort.turn(at(1001), true), Turn::Next);
            cohort.handed_over();
        }
        assert_eq!(cohort.turn(at(1001), true), Turn::Pass);
    }

    #[test]
    fn is_looser_while_nobody_is_known_to_wait() {
        let mut cohort = Cohort::new(at(1000), None, false);
        for _ in 0..10 * HAND_OVERS {
            cohort.handed_over();
        }
        assert_eq!(cohort.turn(at(1099), true), Turn::Next);
        assert_eq!(cohort.turn(at(1100), true), Turn::Pass);
        let cohort = Cohort::new(at(1100), Some(cohort.began()), false);
        assert_eq!(cohort.turn(at(1199), true), Turn::Next);
        assert_eq!(cohort.turn(at(1250), true), Turn::Free);
    }

    #[test]
    fn is_free_soon_while_nobody_could_tell() {
        let cohort = Cohort::new(at(1000), None, false);
        assert_eq!(cohort.turn(at(1024), false), Turn::Next);
        assert_eq!(cohort.turn(at(1025), false), Turn::Free);
    }
}
