//! The state of one key: its local waiters, and how far their manager has come with it.

use std::sync::Arc;

use super::{backoff::Backoff, phase::Phase, waiter::Refusal, waiter_queue::WaiterQueue};
use crate::{clock::Instant, lease::Lease, owner::OwnerToken};

#[derive(Debug)]
pub(crate) struct KeyQueue {
    pub(super) phase: Phase,
    /// The waiters, without the one that holds the lock. The first of them leads: the manager asks for its
    /// lease.
    pub(super) waiters: WaiterQueue,
    /// The last known reason why the lock is not to be had.
    pub(super) refusal: Option<Refusal>,
    pub(super) backoff: Backoff,
    /// When the last record runs out of a token that the queue holds, has held or asks under. Tokens
    /// whose requests were not answered belong to the store, which has their times.
    pub(super) lasts: Instant,
}

impl KeyQueue {
    pub(crate) fn new(random: u64) -> Self {
        let (waiters, backoff) = (WaiterQueue::default(), Backoff::new(random));
        let lasts = Instant::from_nanos(0);
        Self { phase: Phase::Idle, waiters, refusal: None, backoff, lasts }
    }

    /// No caller waits or holds, and no request is out.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    pub(crate) fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// The lease of the section that runs under a token.
    pub(crate) fn held_under(&self, token: &OwnerToken) -> Option<Arc<Lease>> {
        match &self.phase {
            Phase::Holding(hold) if hold.grant.token == *token => Some(Arc::clone(&hold.lease)),
            _ => None,
        }
    }

    pub(crate) fn is_releasing(&self) -> bool {
        matches!(self.phase, Phase::Releasing(_))
    }
}
