//! Which local flights a piece of code is computed in.
//!
//! A flight under a lock is known by its lease; see [`scope`](crate::scope).

use std::{
    cell::RefCell,
    pin::Pin,
    task::{Context, Poll},
};

use crate::flights::FlightId;

thread_local! {
    static WITHIN: RefCell<Vec<(u64, FlightId)>> = const { RefCell::new(Vec::new()) };
}

/// Polls a computation inside of its flight.
pub(super) fn poll_in<F: Future>(
    manager: u64,
    id: &FlightId,
    computation: Pin<&mut F>,
    context: &mut Context<'_>,
) -> Poll<F::Output> {
    let _entered = FlightScope::new((manager, id.clone()));
    computation.poll(context)
}

/// Whether this code would wait for itself.
pub(super) fn is_nested(manager: u64, id: &FlightId) -> bool {
    let is_this = |(of, within): &(u64, FlightId)| *of == manager && within == id;
    WITHIN.try_with(|within| within.borrow().iter().any(is_this)).unwrap_or(false)
}

/// Takes the flight out again, also when a poll panics.
struct FlightScope;

impl FlightScope {
    fn new(flight: (u64, FlightId)) -> Self {
        // A thread that is ending has no locals, and notices no nesting.
        let _ = WITHIN.try_with(|within| within.borrow_mut().push(flight));
        Self
    }
}

impl Drop for FlightScope {
    fn drop(&mut self) {
        let _ended = WITHIN.try_with(|within| within.borrow_mut().pop());
    }
}
