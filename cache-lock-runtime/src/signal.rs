//! Tells all who wait for something that it has happened.
//!
//! `tokio::sync::Notify` wakes nobody after a waker that has panicked.

use std::{
    collections::BTreeMap,
    fmt, mem,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use crate::driver::unharmed;

#[derive(Default)]
pub(crate) struct Signal {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How often it was given.
    given: u64,
    waiting: BTreeMap<u64, Waker>,
    serial: u64,
}

impl Signal {
    /// Wakes all whose wait began before.
    pub(crate) fn give(&self) {
        let waiting = {
            let mut state = self.state();
            state.given += 1;
            mem::take(&mut state.waiting)
        };
        wake_all(waiting.into_values());
    }

    /// Ready as soon as the signal is given, from this call on.
    pub(crate) fn given(&self) -> Given<'_> {
        Given { signal: self, before: self.state().given, slot: None }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakers are code of whoever waits: one that panics must not keep the others asleep.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        unharmed(|| waker.wake());
    }
}

/// See [`Signal::given`].
#[must_use]
pub(crate) struct Given<'a> {
    signal: &'a Signal,
    before: u64,
    slot: Option<u64>,
}

impl Future for Given<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        {
            let state = self.signal.state();
            if state.given != self.before {
                return Poll::Ready(());
            }
            let waiting = self.slot.and_then(|slot| state.waiting.get(&slot));
            if waiting.is_some_and(|waker| waker.will_wake(context.waker())) {
                return Poll::Pending;
            }
        }
        // Cloned and dropped outside of the lock, as both run code of the waker's.
        let waker = context.waker().clone();
        let mut state = self.signal.state();
        if state.given != self.before {
            return Poll::Ready(());
        }
        let slot = self.slot.unwrap_or(state.serial + 1);
        state.serial = state.serial.max(slot);
        let replaced = state.waiting.insert(slot, waker);
        drop(state);
        drop(replaced);
        self.slot = Some(slot);
        Poll::Pending
    }
}

impl Drop for Given<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            let removed = self.signal.state().waiting.remove(&slot);
            unharmed(|| drop(removed));
        }
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        task::Wake,
    };

    use super::*;

    /// Counts, and then panics.
    struct Panics(AtomicUsize);

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
            panic!("a waker that panics");
        }
    }

    #[test]
    fn all_are_woken_though_each_waker_panics() {
        let (signal, counted) = (Signal::default(), Arc::new(Panics(AtomicUsize::new(0))));
        let waker = Waker::from(Arc::clone(&counted));
        let mut context = Context::from_waker(&waker);
        let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(signal.given())).collect();
        for given in &mut waiting {
            assert!(given.as_mut().poll(&mut context).is_pending());
            assert!(given.as_mut().poll(&mut context).is_pending());
        }
        drop(waiting.pop());
        signal.give();
        assert_eq!(counted.0.load(Ordering::Relaxed), 99);
        assert!(waiting.iter_mut().all(|given| given.as_mut().poll(&mut context).is_ready()));
        drop(waiting);
        assert!(signal.state().waiting.is_empty());
    }

    #[test]
    fn a_signal_between_the_call_and_the_first_poll_is_not_missed() {
        let signal = Signal::default();
        signal.give();
        let (later, earlier) = (signal.given(), signal.given());
        let mut context = Context::from_waker(Waker::noop());
        assert!(
            pin!(later).poll(&mut context).is_pending(),
            "what was given before does not count"
        );
        signal.give();
        assert!(pin!(earlier).poll(&mut context).is_ready());
    }
}
