//! A caller that waits for a lock.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use tokio::runtime::Handle;

use crate::{
    clock::Instant,
    error::BackendError,
    lease::Lease,
    mutex::Mutex,
    options::Settings,
    owner::OwnerToken,
    protocol::messages::{AcquireError, AcquireResponse},
};

/// A request on its way, and its answer.
pub(crate) type ResponseFuture =
    Pin<Box<dyn Future<Output = Result<AcquireResponse, AcquireError>> + Send>>;

/// A request that goes over the connection of its asker's runtime.
pub(crate) struct DirectRequest {
    pub(crate) token: OwnerToken,
    pub(crate) answer: ResponseFuture,
    pub(crate) runtime: Option<Handle>,
}

/// Why a waiter did not get the lock.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// Another caller holds it.
    Busy { no_expiry: bool },
    /// The server could not be asked.
    Backend(BackendError),
    /// The manager has ended.
    ShutDown,
}

/// What comes of waiting.
#[derive(Debug)]
pub(crate) enum WaitOutcome {
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
    pub(crate) patience: Instant,
    /// Until when it waits for the first answer of the server.
    pub(crate) end: Instant,
    /// Where it stands in its line. Read and written under the lock of its key.
    serial: AtomicU64,
    state: Mutex<WaiterState>,
    /// A request that the waiter's own future drives, until another waiter depends on it.
    request: Mutex<Option<DirectRequest>>,
}

enum WaiterState {
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
        patience: Instant,
        end: Instant,
    ) -> Self {
        let state = Mutex::new(WaiterState::Waiting(None));
        let (serial, request) = (AtomicU64::new(0), Mutex::default());
        Self { settings, enclosing, patience, end, serial, state, request }
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial.load(Ordering::Relaxed)
    }

    pub(super) fn set_serial(&self, serial: u64) {
        self.serial.store(serial, Ordering::Relaxed);
    }

    /// Hands it the lock. Returns the waker to be woken.
    pub(crate) fn hand(&self, lease: Arc<Lease>) -> Option<Waker> {
        self.resolve(WaiterState::Handed(lease))
    }

    pub(crate) fn refuse(&self, refusal: Refusal) -> Option<Waker> {
        self.resolve(WaiterState::Refused(refusal))
    }

    fn resolve(&self, outcome: WaiterState) -> Option<Waker> {
        match std::mem::replace(&mut *self.state.lock(), outcome) {
            WaiterState::Waiting(waker) => waker,
            _ => None,
        }
    }

    /// Takes the lease back that it was handed and did not take. It joins again when it is polled.
    pub(crate) fn miss(&self) -> bool {
        let mut state = self.state.lock();
        let missed = matches!(*state, WaiterState::Handed(_));
        if missed {
            *state = WaiterState::Missed;
        }
        missed
    }

    /// Its future is gone. Returns the lease that it was handed and did not take.
    pub(crate) fn leave(&self) -> Option<Arc<Lease>> {
        match std::mem::replace(&mut *self.state.lock(), WaiterState::Left) {
            WaiterState::Handed(lease) => Some(lease),
            _ => None,
        }
    }

    /// Takes the lease, if it was handed one.
    pub(crate) fn take_handed(&self) -> Option<Arc<Lease>> {
        let mut state = self.state.lock();
        if !matches!(*state, WaiterState::Handed(_)) {
            return None;
        }
        match std::mem::replace(&mut *state, WaiterState::Left) {
            WaiterState::Handed(lease) => Some(lease),
            _ => None,
        }
    }

    /// The waker that it has left. When it is polled it leaves another one.
    pub(crate) fn take_waker(&self) -> Option<Waker> {
        match &mut *self.state.lock() {
            WaiterState::Waiting(waker) => waker.take(),
            _ => None,
        }
    }

    pub(crate) fn ask_directly(&self, request: DirectRequest) {
        *self.request.lock() = Some(request);
    }

    pub(crate) fn asks_directly(&self) -> bool {
        self.request.lock().is_some()
    }

    /// The request that its future drives, for another task to drive.
    pub(crate) fn take_over(&self) -> Option<DirectRequest> {
        self.request.lock().take()
    }

    /// Drives its request. `None` if it has none.
    pub(crate) fn poll_request(
        &self,
        context: &mut Context<'_>,
    ) -> Option<Poll<(OwnerToken, Result<AcquireResponse, AcquireError>)>> {
        let mut request = self.request.lock();
        let answer = &mut request.as_mut()?.answer;
        let Poll::Ready(answer) = answer.as_mut().poll(context) else {
            return Some(Poll::Pending);
        };
        let token = request.take()?.token;
        Some(Poll::Ready((token, answer)))
    }

    pub(crate) fn poll_outcome(&self, context: &mut Context<'_>) -> Poll<WaitOutcome> {
        // Cloned and dropped outside of the lock, as both run code of the caller's.
        let mut waker = Some(context.waker().clone());
        let mut state = self.state.lock();
        match &mut *state {
            WaiterState::Waiting(before) => std::mem::swap(before, &mut waker),
            WaiterState::Handed(_)
            | WaiterState::Refused(_)
            | WaiterState::Missed
            | WaiterState::Left => {
                return Poll::Ready(match std::mem::replace(&mut *state, WaiterState::Left) {
                    WaiterState::Handed(lease) => WaitOutcome::Handed(lease),
                    WaiterState::Refused(refusal) => WaitOutcome::Refused(refusal),
                    _ => WaitOutcome::Missed,
                });
            }
        }
        drop(state);
        Poll::Pending
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("patience", &self.patience).finish_non_exhaustive()
    }
}
