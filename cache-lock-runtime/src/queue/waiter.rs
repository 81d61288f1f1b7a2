//! A caller that waits for a lock.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use tokio::runtime::Handle;

use crate::{
    clock::Moment,
    error::BackendError,
    lease::Lease,
    options::Settings,
    owner::OwnerToken,
    store::{Failed, Reply},
};

/// A question on its way, and its answer.
pub(crate) type Asked = Pin<Box<dyn Future<Output = Result<Reply, Failed>> + Send>>;

/// A question that goes over the connection of its asker's runtime.
pub(super) struct Errand {
    pub(super) token: OwnerToken,
    pub(super) asked: Asked,
    pub(super) runtime: Option<Handle>,
}

/// Why a waiter did not get the lock.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// Somebody else holds it.
    Busy { no_expiry: bool },
    /// The server could not be asked.
    Backend(BackendError),
    /// The manager has ended.
    ShutDown,
}

/// What comes of waiting.
#[derive(Debug)]
pub(crate) enum Outcome {
    Handed(Arc<Lease>),
    Refused(Refusal),
    /// The lease was handed to it, and passed on, since it was not polled.
    Missed,
}

pub(crate) struct Waiter {
    pub(crate) settings: Settings,
    /// The lease whose body, in the same task, asks.
    pub(crate) enclosing: Option<Arc<Lease>>,
    /// Until when it waits for another holder.
    pub(crate) patience: Moment,
    /// Until when it waits for the first answer of the server.
    pub(crate) end: Moment,
    /// Where it stands in its line. Read and written under the lock of its place.
    serial: AtomicU64,
    state: Mutex<State>,
    /// A question that the waiter's own future drives, until somebody else depends on it.
    asked: Mutex<Option<Errand>>,
}

enum State {
    Waiting(Option<Waker>),
    Handed(Arc<Lease>),
    Refused(Refusal),
    Missed,
    /// Its future knows the outcome, or is gone.
    Left,
}

impl Waiter {
    pub(crate) fn new(
        settings: Settings,
        enclosing: Option<Arc<Lease>>,
        patience: Moment,
        end: Moment,
    ) -> Self {
        let state = Mutex::new(State::Waiting(None));
        let (serial, asked) = (AtomicU64::new(0), Mutex::default());
        Self { settings, enclosing, patience, end, serial, state, asked }
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial.load(Ordering::Relaxed)
    }

    pub(super) fn set_serial(&self, serial: u64) {
        self.serial.store(serial, Ordering::Relaxed);
    }

    /// The place of the key hands it the lock. Returns whom to wake.
    pub(super) fn hand(&self, lease: Arc<Lease>) -> Option<Waker> {
        self.resolve(State::Handed(lease))
    }

    pub(super) fn refuse(&self, refusal: Refusal) -> Option<Waker> {
        self.resolve(State::Refused(refusal))
    }

    fn resolve(&self, outcome: State) -> Option<Waker> {
        match std::mem::replace(&mut *self.state(), outcome) {
            State::Waiting(waker) => waker,
            _ => None,
        }
    }

    /// Takes the lease back that it was handed and did not take. It joins again when it is polled.
    pub(super) fn miss(&self) -> bool {
        let mut state = self.state();
        let missed = matches!(*state, State::Handed(_));
        if missed {
            *state = State::Missed;
        }
        missed
    }

    /// Its future is gone. Returns the lease that it was handed and did not take.
    pub(super) fn leave(&self) -> Option<Arc<Lease>> {
        match std::mem::replace(&mut *self.state(), State::Left) {
            State::Handed(lease) => Some(lease),
            _ => None,
        }
    }

    /// The waker that it has left. When it is polled it leaves another one.
    pub(super) fn take_waker(&self) -> Option<Waker> {
        match &mut *self.state() {
            State::Waiting(waker) => waker.take(),
            _ => None,
        }
    }

    pub(super) fn ask_by_itself(&self, errand: Errand) {
        *self.asked() = Some(errand);
    }

    pub(super) fn asks_by_itself(&self) -> bool {
        self.asked().is_some()
    }

    /// The question that its future drives, for somebody else to drive.
    pub(super) fn take_over(&self) -> Option<Errand> {
        self.asked().take()
    }

    /// Drives its question, if it has one. `None` if it has none.
    pub(super) fn poll_question(
        &self,
        context: &mut Context<'_>,
    ) -> Option<Poll<(OwnerToken, Result<Reply, Failed>)>> {
        let mut asked = self.asked();
        let question = &mut asked.as_mut()?.asked;
        let Poll::Ready(answer) = question.as_mut().poll(context) else {
            return Some(Poll::Pending);
        };
        let token = asked.take()?.token;
        Some(Poll::Ready((token, answer)))
    }

    pub(super) fn poll_outcome(&self, context: &mut Context<'_>) -> Poll<Outcome> {
        // Cloned and dropped outside of the lock, as both run code of the caller's.
        let mut waker = Some(context.waker().clone());
        let mut state = self.state();
        match &mut *state {
            State::Waiting(before) => std::mem::swap(before, &mut waker),
            State::Handed(_) | State::Refused(_) | State::Missed | State::Left => {
                return Poll::Ready(match std::mem::replace(&mut *state, State::Left) {
                    State::Handed(lease) => Outcome::Handed(lease),
                    State::Refused(refusal) => Outcome::Refused(refusal),
                    _ => Outcome::Missed,
                });
            }
        }
        drop(state);
        Poll::Pending
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> MutexGuard<'_, Option<Errand>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("patience", &self.patience).finish_non_exhaustive()
    }
}
