//! A mutex without poisoning: each value that it guards is whole between any two calls, so a panic of one caller
//! does not concern the next.
//!
//! It is std's, whose state lies in the mutex alone: a lock in a table of the process, as in `parking_lot`, may
//! stay locked in a forked child.

pub(crate) use std::sync::MutexGuard;
use std::sync::{self, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
