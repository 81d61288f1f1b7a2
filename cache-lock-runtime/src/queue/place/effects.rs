//! What a place is told, and what it has done.

use std::{sync::Arc, task::Waker, time::Duration};

use crate::{
    clock::Moment,
    key::LockKey,
    lease::attempt,
    owner::{OwnerToken, Owners},
    queue::{Seat, waiter::Waiter},
    store::{Ended, Question},
};

/// Who was handed the lock, or asks for it, and is not polled for so long, or for a tenth of the
/// lease, must not keep others from it.
const POLLED_WITHIN: Duration = Duration::from_millis(100);

/// What an event finds, beside the place itself.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) key: &'a LockKey,
    /// Where the place is. None in tests of a place alone.
    pub(crate) seat: Option<&'a Arc<Seat>>,
    /// The manager's number.
    pub(crate) manager: u64,
    pub(crate) owners: &'a Arc<Owners>,
    /// The longest time that a request may take.
    pub(crate) attempt: Duration,
    /// Pushes arrive, so it is known who of the managers waits.
    pub(crate) told: bool,
    pub(crate) now: Moment,
}

/// What is to be done after an event.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// A question to be asked.
    pub(crate) ask: Option<Question>,
    /// Who asks it, if that is a waiter's own future.
    pub(crate) asker: Option<Arc<Waiter>>,
    /// A waiter whose question somebody else must drive from now on.
    pub(crate) take_over: Option<TakeOver>,
    /// A waiter whose question was not sent, and need not be.
    pub(crate) cancel: Option<Arc<Waiter>>,
    /// A token whose lease or wait is to be ended.
    pub(crate) release: Option<Ended>,
    /// Who has news.
    pub(crate) wake: Vec<Waker>,
    /// The alarm of the place is too early by far.
    pub(crate) postponed: bool,
    /// A lease was handed from one section to the next without a question.
    pub(crate) handed_over: bool,
}

/// A question that is out on the connection of a runtime that may be blocked.
#[derive(Debug)]
pub(crate) struct TakeOver {
    pub(crate) waiter: Arc<Waiter>,
    pub(crate) token: OwnerToken,
    /// The question is given up if that connection brings no answer within this time.
    pub(crate) patience: Duration,
}

impl Scene<'_> {
    /// The longest time that a request for such a lease may take.
    pub(crate) fn attempt(&self, expire: Duration) -> Duration {
        attempt(self.attempt, expire)
    }

    pub(in crate::queue) fn polled_within(&self, expire: Duration) -> Duration {
        POLLED_WITHIN.min(expire / 10).min(self.attempt)
    }
}
