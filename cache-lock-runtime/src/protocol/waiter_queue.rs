//! The waiters of a key: first come, first served, and each may leave at any time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::waiter::Waiter;
use crate::clock::Instant;

/// Each step costs a logarithm of the number of waiters: all waiters of a key may leave in the same moment,
/// each under the lock of the key.
#[derive(Debug, Default)]
pub(super) struct WaiterQueue {
    /// Mostly the only one, which needs no allocation. `None` only if there are no others.
    front: Option<Arc<Waiter>>,
    others: BTreeMap<u64, Arc<Waiter>>,
    /// The others by the end of their patience.
    by_patience: BTreeSet<(Instant, u64)>,
    /// The serial number of the waiter that came last.
    last: u64,
}

impl WaiterQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.front.is_none()
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.front.is_some()) + self.others.len()
    }

    pub(super) fn front(&self) -> Option<&Arc<Waiter>> {
        self.front.as_ref()
    }

    pub(super) fn push_back(&mut self, waiter: &Arc<Waiter>) {
        self.last += 1;
        waiter.set_serial(self.last);
        if self.front.is_none() {
            self.front = Some(Arc::clone(waiter));
            return;
        }
        self.others.insert(self.last, Arc::clone(waiter));
        self.by_patience.insert((waiter.patience, self.last));
    }

    pub(super) fn pop_front(&mut self) -> Option<Arc<Waiter>> {
        let next = self.others.pop_first().map(|(serial, waiter)| {
            self.by_patience.remove(&(waiter.patience, serial));
            waiter
        });
        std::mem::replace(&mut self.front, next)
    }

    /// Does nothing if the waiter has left before.
    pub(super) fn remove(&mut self, waiter: &Arc<Waiter>) {
        let serial = waiter.serial();
        // The queue may have been made anew since, with other waiters of the same numbers.
        if self.front.as_ref().is_some_and(|front| Arc::ptr_eq(front, waiter)) {
            self.pop_front();
        } else if self.others.get(&serial).is_some_and(|other| Arc::ptr_eq(other, waiter)) {
            self.others.remove(&serial);
            self.by_patience.remove(&(waiter.patience, serial));
        }
    }

    /// Takes out a waiter whose patience is over.
    pub(super) fn pop_late(&mut self, now: Instant) -> Option<Arc<Waiter>> {
        if self.front.as_ref().is_some_and(|front| front.patience <= now) {
            return self.pop_front();
        }
        let &(patience, serial) = self.by_patience.first()?;
        if patience > now {
            return None;
        }
        self.by_patience.pop_first();
        self.others.remove(&serial)
    }

    /// Whether the patience of a waiter goes beyond `now`.
    pub(super) fn is_patient(&self, now: Instant) -> bool {
        let last = self.by_patience.last().map(|&(patience, _)| patience);
        self.front.iter().map(|front| front.patience).chain(last).any(|patience| patience > now)
    }

    #[cfg(all(test, feature = "redis"))]
    pub(super) fn replace_front(&mut self, waiter: &Arc<Waiter>) {
        if let Some(front) = &mut self.front {
            debug_assert_eq!(waiter.patience, front.patience);
            waiter.set_serial(front.serial());
            *front = Arc::clone(waiter);
        }
    }
}
