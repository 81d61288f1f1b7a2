//! What an event finds beside the state of its key, and what follows from it.

use std::{sync::Arc, task::Waker, time::Duration};

use super::{
    messages::{AcquireRequest, ReleaseRequest},
    waiter::Waiter,
};
use crate::{
    clock::Instant,
    key::LockKey,
    lease::attempt,
    owner::{OwnerToken, TokenSource},
};

/// A waiter that is not polled within this time, or within a tenth of its lease, loses its turn.
const POLLED_WITHIN: Duration = Duration::from_millis(100);

/// What an event finds beside the state of its key.
#[derive(Debug)]
pub(crate) struct Env<'a> {
    pub(crate) key: &'a LockKey,
    /// The manager's number.
    pub(crate) manager: u64,
    pub(crate) tokens: &'a Arc<TokenSource>,
    /// The longest time that a request may take.
    pub(crate) attempt: Duration,
    /// Pushes arrive, so the manager knows of other managers that wait.
    pub(crate) told: bool,
    pub(crate) now: Instant,
}

impl Env<'_> {
    /// The longest time that a request for such a lease may take.
    pub(super) fn attempt(&self, expire: Duration) -> Duration {
        attempt(self.attempt, expire)
    }

    pub(super) fn polled_within(&self, expire: Duration) -> Duration {
        POLLED_WITHIN.min(expire / 10).min(self.attempt)
    }
}

/// What is to be done after an event.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// A request to be sent.
    pub(crate) acquire: Option<AcquireRequest>,
    /// The waiter whose own future sends it. Without one the driver does.
    pub(crate) asker: Option<Arc<Waiter>>,
    /// A waiter whose request the driver drives from now on.
    pub(crate) take_over: Option<TakeOver>,
    /// A waiter whose request was not sent, and need not be.
    pub(crate) cancel: Option<Arc<Waiter>>,
    /// A token whose lease or wait is to be ended.
    pub(crate) release: Option<ReleaseRequest>,
    /// Waiters that have news.
    pub(crate) wake: Vec<Waker>,
    /// The timer of the key is too early by far.
    pub(crate) postponed: bool,
    /// A lease was handed from one section to the next without a request.
    pub(crate) handed_over: bool,
}

/// A request that is out on the connection of a runtime that may be blocked.
#[derive(Debug)]
pub(crate) struct TakeOver {
    pub(crate) waiter: Arc<Waiter>,
    pub(crate) token: OwnerToken,
    /// The request is given up if that connection brings no answer within this time.
    pub(crate) patience: Duration,
}
