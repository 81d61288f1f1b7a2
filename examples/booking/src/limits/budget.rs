//! A budget of each key, that is refilled as time goes by.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Rate;

/// So many at once for each key, refilled evenly: the generic cell rate algorithm.
///
/// The crate `governor` has it too, but counts for good. A login is counted before its password is
/// compared, so that a hundred at once do not all pass, and given back if the password is right.
pub(super) struct Budget<K> {
    each: Duration,
    all: Duration,
    /// When the budget of a key is full again. A key that is missing has a full one.
    full_at: Mutex<HashMap<K, Instant>>,
}

impl<K: Hash + Eq + Clone> Budget<K> {
    pub(super) fn new(rate: Rate) -> Self {
        let each = rate.per / rate.times.get();
        Self { each, all: each * rate.times.get(), full_at: Mutex::default() }
    }

    /// Takes one of a key's budget.
    ///
    /// # Errors
    /// It is used up: how long until there is one again.
    pub(super) fn take(&self, key: &K, now: Instant) -> Result<(), Duration> {
        let mut full_at = self.full_at();
        let spent = full_at.get(key).map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        let spent = spent + self.each;
        if spent > self.all {
            return Err(spent - self.all);
        }
        full_at.insert(key.clone(), now + spent);
        Ok(())
    }

    /// Gives one back that was taken.
    pub(super) fn give_back(&self, key: &K, now: Instant) {
        let mut full_at = self.full_at();
        let Some(at) = full_at.get_mut(key) else { return };
        match at.checked_sub(self.each).filter(|at| *at > now) {
            Some(earlier) => *at = earlier,
            None => drop(full_at.remove(key)),
        }
    }

    /// Forgets keys whose budget is full.
    pub(super) fn tidy(&self, now: Instant) {
        self.full_at().retain(|_, at| *at > now);
    }

    fn full_at(&self) -> MutexGuard<'_, HashMap<K, Instant>> {
        self.full_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> fmt::Debug for Budget<K> {
    /// Without the keys, which are addresses of users.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("each", &self.each).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Duration, Instant, Rate};

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_budget_is_used_up_and_comes_back_evenly() {
        let budget = Budget::new(Rate::new(3, MINUTE));
        let began = Instant::now();
        for _ in 0..3 {
            assert_eq!(budget.take(&"ann", began), Ok(()));
        }
        assert_eq!(budget.take(&"ann", began), Err(MINUTE / 3));
        assert_eq!(budget.take(&"bob", began), Ok(()), "each has one");
        assert_eq!(budget.take(&"ann", began + MINUTE / 3), Ok(()));
        assert!(budget.take(&"ann", began + MINUTE / 3).is_err(), "one came back");
        let later = began + 2 * MINUTE;
        assert_eq!((0..9).filter(|_| budget.take(&"ann", later).is_ok()).count(), 3);
    }

    #[test]
    fn what_is_given_back_can_be_taken_again_and_no_more_than_that() {
        let budget = Budget::new(Rate::new(2, MINUTE));
        let now = Instant::now();
        for _ in 0..100 {
            assert_eq!(budget.take(&"ann", now), Ok(()));
            budget.give_back(&"ann", now);
        }
        assert!(budget.full_at().is_empty(), "a full budget takes no memory");
        budget.give_back(&"ann", now);
        assert_eq!((0..9).filter(|_| budget.take(&"ann", now).is_ok()).count(), 2);
    }

    #[test]
    fn whoever_has_a_full_budget_is_forgotten() {
        let budget = Budget::new(Rate::new(2, MINUTE));
        let now = Instant::now();
        assert_eq!(budget.take(&"ann", now), Ok(()));
        budget.tidy(now + MINUTE / 4);
        assert_eq!(budget.full_at().len(), 1);
        budget.tidy(now + MINUTE / 2);
        assert!(budget.full_at().is_empty());
    }
}
