//! Whose turn it is, among the bookings of one user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::domain::UserId;

/// One booking of a user at a time in this replica.
///
/// The user's lock says so for the whole fleet. Its waiters would each have one of the replica's
/// places for bookings, so that a single account with many connections could have them all; here
/// they wait before they have one.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<UserId, Arc<Semaphore>>>);

/// The turn of a user, or a place in the line for it. Dropped, the next one's turn begins.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    user: UserId,
    /// None once it is left.
    line: Option<Arc<Semaphore>>,
    begun: bool,
}

impl Turns {
    /// This user's turn, or none within `patience`.
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    pub(super) async fn take(&self, user: UserId, patience: Duration) -> Option<Turn<'_>> {
        let new = || Arc::new(Semaphore::new(1));
        let line = self.lines().entry(user).or_insert_with(new).clone();
        let mut turn = Turn { turns: self, user, line: Some(line), begun: false };
        // Dropped before the turn, which counts the copies.
        let line = turn.line.clone()?;
        let begun = tokio::time::timeout(patience, line.acquire()).await;
        begun.ok()?.ok()?.forget();
        turn.begun = true;
        Some(turn)
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<UserId, Arc<Semaphore>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut lines = self.turns.lines();
        let Some(line) = self.line.take() else { return };
        if self.begun {
            line.add_permits(1);
        }
        // Under the lock, under which the copies are made, too: the last one to leave takes the
        // line away, and no request joins meanwhile.
        drop(line);
        if lines.get(&self.user).is_some_and(|line| Arc::strong_count(line) == 1) {
            lines.remove(&self.user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Turns, UserId};

    const AT_ONCE: Duration = Duration::ZERO;
    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_user_has_one_turn_at_a_time_and_others_have_theirs() {
        let turns = Turns::default();
        let [ann, bob] = [UserId::random(), UserId::random()];
        let first = turns.take(ann, MINUTE).await.expect("nobody is before");
        assert!(turns.take(ann, AT_ONCE).await.is_none());
        assert!(turns.take(bob, AT_ONCE).await.is_some());
        let (next, ()) = tokio::join!(turns.take(ann, MINUTE), async {
            tokio::task::yield_now().await;
            drop(first);
        });
        assert!(next.is_some(), "a turn that ends is the next one's");
        assert!(turns.take(ann, AT_ONCE).await.is_none());
    }

    #[tokio::test]
    async fn nothing_is_kept_of_those_who_left() {
        let turns = Turns::default();
        let ann = UserId::random();
        let first = turns.take(ann, MINUTE).await;
        assert!(turns.take(ann, AT_ONCE).await.is_none());
        // One that is dropped while it waits.
        assert!(tokio::time::timeout(AT_ONCE, turns.take(ann, MINUTE)).await.is_err());
        assert_eq!(turns.lines().len(), 1);
        drop(first);
        assert!(turns.lines().is_empty());
        assert!(turns.take(ann, AT_ONCE).await.is_some());
    }
}
