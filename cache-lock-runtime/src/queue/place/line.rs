//! The line of a key's waiters: first come, first served, and each may leave at any time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{clock::Moment, queue::waiter::Waiter};

/// The waiters of a place. Each step costs a logarithm of their number: a waiter that leaves holds the
/// lock of all keys meanwhile, and all waiters of a key may leave in the same moment.
#[derive(Debug, Default)]
pub(in crate::queue) struct Line {
    in_order: BTreeMap<u64, Arc<Waiter>>,
    /// The same waiters by the end of their patience.
    by_patience: BTreeSet<(Moment, u64)>,
    /// The serial number of the waiter that came last.
    last: u64,
}

impl Line {
    pub(super) fn is_empty(&self) -> bool {
        self.in_order.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.in_order.len()
    }

    pub(super) fn front(&self) -> Option<&Arc<Waiter>> {
        self.in_order.values().next()
    }

    pub(super) fn push_back(&mut self, waiter: &Arc<Waiter>) {
        self.last += 1;
        waiter.set_serial(self.last);
        self.in_order.insert(self.last, Arc::clone(waiter));
        self.by_patience.insert((waiter.patience, self.last));
    }

    pub(super) fn pop_front(&mut self) -> Option<Arc<Waiter>> {
        let (serial, waiter) = self.in_order.pop_first()?;
        self.by_patience.remove(&(waiter.patience, serial));
        Some(waiter)
    }

    /// Does nothing if the waiter has left before.
    pub(super) fn remove(&mut self, waiter: &Arc<Waiter>) {
        let serial = waiter.serial();
        // The place may have been made anew since, with other waiters of the same numbers.
        if self.in_order.get(&serial).is_some_and(|other| Arc::ptr_eq(other, waiter)) {
            self.in_order.remove(&serial);
            self.by_patience.remove(&(waiter.patience, serial));
        }
    }

    /// Takes out a waiter whose patience is over.
    pub(super) fn pop_late(&mut self, now: Moment) -> Option<Arc<Waiter>> {
        let &(patience, serial) = self.by_patience.first()?;
        if patience > now {
            return None;
        }
        self.by_patience.pop_first();
        self.in_order.remove(&serial)
    }

    /// Whether the patience of a waiter goes beyond `now`.
    pub(super) fn is_patient(&self, now: Moment) -> bool {
        self.by_patience.last().is_some_and(|&(patience, _)| patience > now)
    }

    #[cfg(all(test, feature = "redis"))]
    pub(super) fn replace_front(&mut self, waiter: &Arc<Waiter>) {
        if let Some(mut first) = self.in_order.first_entry() {
            waiter.set_serial(*first.key());
            debug_assert_eq!(waiter.patience, first.get().patience);
            *first.get_mut() = Arc::clone(waiter);
        }
    }
}
