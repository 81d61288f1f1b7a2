//! Wakes all tasks that wait for an event.
//!
//! After a waker that panics, `tokio::sync::Notify` wakes none of the others.

use std::{
    collections::BTreeMap,
    fmt, mem,
    pin::Pin,
    task::{Context, Poll, Waker},
};

#[cfg(feature = "redis")]
use std::sync::Arc;

use crate::{mutex::Mutex, unharmed::unharmed};

#[derive(Default)]
pub(crate) struct Signal {
    state: Mutex<Listeners>,
}

#[derive(Default)]
struct Listeners {
    /// The number of times that it was given.
    given: u64,
    waiting: Waiting,
    serial: u64,
}

/// Wakers by number. The first needs no allocation, as a lease rarely has more.
#[derive(Default)]
struct Waiting {
    one: Option<(u64, Waker)>,
    more: BTreeMap<u64, Waker>,
}

impl Waiting {
    fn get(&self, slot: u64) -> Option<&Waker> {
        let one = self.one.as_ref().filter(|one| one.0 == slot).map(|one| &one.1);
        one.or_else(|| self.more.get(&slot))
    }

    /// Returns the waker that it replaces.
    fn insert(&mut self, slot: u64, waker: Waker) -> Option<Waker> {
        match &mut self.one {
            None if !self.more.contains_key(&slot) => {
                self.one = Some((slot, waker));
                None
            }
            Some(one) if one.0 == slot => Some(mem::replace(&mut one.1, waker)),
            _ => self.more.insert(slot, waker),
        }
    }

    fn remove(&mut self, slot: u64) -> Option<Waker> {
        let one = self.one.take_if(|one| one.0 == slot).map(|one| one.1);
        one.or_else(|| self.more.remove(&slot))
    }

    fn into_wakers(self) -> impl Iterator<Item = Waker> {
        self.one.map(|one| one.1).into_iter().chain(self.more.into_values())
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.one.is_none() && self.more.is_empty()
    }
}

impl Signal {
    /// Ends every wait that began before.
    pub(crate) fn give(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.given += 1;
            mem::take(&mut state.waiting)
        };
        wake_all(waiting.into_wakers());
    }

    /// Ready as soon as the signal is given, from this call on.
    pub(crate) fn given(&self) -> Given<'_> {
        Given { signal: self, before: self.state.lock().given, slot: None }
    }
}

/// Wakers are code of the user's: one that panics must not keep the others asleep.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        unharmed(|| waker.wake());
    }
}

/// Polls a future whose waker goes to code that is not ours: the panic of a caller's waker ends here.
/// In the task of a connection it would end the connection, and a second one the process.
///
/// It is pinned by the caller: a future that is moved takes its room twice.
#[cfg(feature = "redis")]
pub(crate) async fn shielded<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    let shield = Arc::new(Shield::default());
    let waker = Waker::from(Arc::clone(&shield));
    std::future::poll_fn(|context| {
        shield.set(context.waker().clone());
        future.as_mut().poll(&mut Context::from_waker(&waker))
    })
    .await
}

/// Wakes the last waker that it was given.
#[cfg(feature = "redis")]
#[derive(Default)]
struct Shield(Mutex<Option<Waker>>);

#[cfg(feature = "redis")]
impl Shield {
    fn set(&self, waker: Waker) {
        drop(self.replace(Some(waker)));
    }

    /// Dropped outside of the lock, as that runs code of the waker's.
    fn replace(&self, waker: Option<Waker>) -> Option<Waker> {
        mem::replace(&mut *self.0.lock(), waker)
    }
}

#[cfg(feature = "redis")]
impl std::task::Wake for Shield {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        wake_all(self.replace(None));
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
            let state = self.signal.state.lock();
            if state.given != self.before {
                return Poll::Ready(());
            }
            let waiting = self.slot.and_then(|slot| state.waiting.get(slot));
            if waiting.is_some_and(|waker| waker.will_wake(context.waker())) {
                return Poll::Pending;
            }
        }
        // Cloned and dropped outside of the lock, as both run code of the waker's.
        let waker = context.waker().clone();
        let mut state = self.signal.state.lock();
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
            let removed = self.signal.state.lock().waiting.remove(slot);
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
        assert!(signal.state.lock().waiting.is_empty());
    }

    #[test]
    fn wakers_are_found_under_their_numbers_wherever_they_are_kept() {
        let (signal, counted) = (Signal::default(), Arc::new(Panics(AtomicUsize::new(0))));
        let (waker, noop) = (Waker::from(Arc::clone(&counted)), Waker::noop());
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(signal.given())).collect();
        for given in &mut waiting {
            assert!(given.as_mut().poll(&mut Context::from_waker(noop)).is_pending());
        }
        drop(waiting.remove(0));
        // The last of those that are left has another waker now, and the first one none.
        let last = waiting[1].as_mut().poll(&mut Context::from_waker(&waker));
        assert!(last.is_pending());
        drop(waiting.remove(0));
        signal.give();
        assert_eq!(counted.0.load(Ordering::Relaxed), 1);
        assert!(signal.state.lock().waiting.is_empty());
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
