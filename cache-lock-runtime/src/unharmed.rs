//! Calls of the user's code, which may panic.

use std::{
    mem,
    panic::{self, AssertUnwindSafe},
};

/// Runs code that may panic, and goes on all the same.
pub(crate) fn unharmed(event: impl FnOnce()) {
    if let Err(panicked) = panic::catch_unwind(AssertUnwindSafe(event)) {
        // What it panicked with may panic once more when it is dropped.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| drop(panicked))).map_err(mem::forget);
    }
}
