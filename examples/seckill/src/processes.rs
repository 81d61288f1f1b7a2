//! What each process of a run had of the sale and of the locks.

use cache_lock::LockStats;
use serde::{Deserialize, Serialize};

use crate::buyers::{Answer, Outcome};

/// How the buyers of a process came to their locks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockCounts {
    /// Locks that were acquired.
    pub acquired: u64,
    /// How many of them came from another buyer of the same process, without a word to the server.
    pub handed_over: u64,
}

impl LockCounts {
    /// What a manager has done between two looks at it.
    #[must_use]
    pub fn between(before: LockStats, after: LockStats) -> Self {
        Self {
            acquired: after.acquired - before.acquired,
            handed_over: after.handed_over - before.handed_over,
        }
    }

    /// The part that was handed over, if there was anything to hand over.
    #[must_use]
    pub fn local_share(self) -> Option<f64> {
        share(self.handed_over, self.acquired)
    }
}

impl std::iter::Sum for LockCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, counts| Self {
            acquired: sum.acquired + counts.acquired,
            handed_over: sum.handed_over + counts.handed_over,
        })
    }
}

/// A process, and what came of its buyers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// How many it had.
    pub buyers: u32,
    /// How many of them have bought.
    pub bought: u64,
    /// `None` if it died before it could tell.
    pub locks: Option<LockCounts>,
}

impl Process {
    /// The process that has served these buyers.
    #[must_use]
    pub fn new(
        buyers: &std::ops::Range<u32>,
        answers: &[Answer],
        locks: Option<LockCounts>,
    ) -> Self {
        let bought = answers
            .iter()
            .filter(|answer| buyers.contains(&answer.buyer) && answer.outcome == Outcome::Bought)
            .count();
        Self { buyers: buyers.end - buyers.start, bought: bought as u64, locks }
    }
}

/// What `part` is of `all`.
#[must_use]
pub fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_what_its_own_buyers_bought() {
        let outcomes = [Outcome::Bought, Outcome::SoldOut, Outcome::Bought, Outcome::Bought];
        let answers: Vec<Answer> = (0..)
            .zip(outcomes)
            .map(|(buyer, outcome)| Answer { buyer, wait_us: 1, outcome })
            .collect();
        let bought = |buyers| Process::new(&buyers, &answers, None).bought;
        assert_eq!([bought(0..2), bought(2..4), bought(4..6)], [1, 2, 0]);
    }

    #[test]
    fn of_nothing_there_is_no_share() {
        let shares = [(0, 0), (0, 4), (3, 4)];
        let shares = shares.map(|(handed_over, acquired)| LockCounts { acquired, handed_over });
        assert_eq!(shares.map(LockCounts::local_share), [None, Some(0.0), Some(0.75)]);
        let sum: LockCounts = shares.into_iter().sum();
        assert_eq!(sum, LockCounts { acquired: 8, handed_over: 3 });
    }
}
