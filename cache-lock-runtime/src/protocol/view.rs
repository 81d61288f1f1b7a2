//! What a replay of the model sees of a key, and how it makes a cohort's decision.

use std::{sync::Arc, time::Duration};

use super::{
    cohort::{Cohort, Succession},
    key_queue::KeyQueue,
    phase::{Hold, Pending, Phase, Registered},
    waiter::Waiter,
};
use crate::{clock::Instant, lease::Lease, options::Settings, owner::OwnerToken};

/// How far the manager has come.
#[derive(Debug)]
pub(super) enum Seen {
    Idle,
    /// Asking, or with an old token *passing*.
    Asking {
        token: OwnerToken,
        old: Option<OwnerToken>,
        granted: bool,
    },
    Registered {
        token: OwnerToken,
        old: Option<OwnerToken>,
        due: Instant,
    },
    Holding {
        token: OwnerToken,
        lease: Arc<Lease>,
        left: usize,
    },
    Releasing(OwnerToken),
    Yielded(Instant),
}

impl KeyQueue {
    pub(super) fn seen(&self) -> Seen {
        match &self.phase {
            Phase::Idle => Seen::Idle,
            Phase::Asking(pending) | Phase::Passing(pending) => {
                let Pending { token, kind, granted, .. } = pending;
                let (token, old) = (token.clone(), kind.old().cloned());
                Seen::Asking { token, old, granted: *granted }
            }
            Phase::Registered(Registered { token, kind, due, .. }) => {
                let (token, old) = (token.clone(), kind.old().cloned());
                Seen::Registered { token, old, due: *due }
            }
            Phase::Holding(Hold { grant, lease, .. }) => {
                let mut numbers = grant.numbers;
                let left = std::iter::from_fn(|| numbers.take()).count();
                Seen::Holding { token: grant.token.clone(), lease: Arc::clone(lease), left }
            }
            Phase::Releasing(releasing) => Seen::Releasing(releasing.token.clone()),
            Phase::Yielded(until) => Seen::Yielded(*until),
        }
    }

    pub(super) fn waiters(&self) -> usize {
        self.waiters.len()
    }

    /// Has the section's cohort decide in this way if the section ends `now`. In the model the decision is
    /// free; here it follows from times. The rest of a lease has to suit the waiter that it is handed to, so
    /// a waiter that it suits takes the place of that one, and is returned.
    pub(super) fn decide(&mut self, succession: Succession, now: Instant) -> Option<Arc<Waiter>> {
        let Phase::Holding(Hold { grant, lease, .. }) = &mut self.phase else { return None };
        let others = grant.cohort.others;
        grant.cohort = match succession {
            Succession::HandOver => Cohort::new(now, others, Instant::FAR),
            Succession::Pass => Cohort::new(now - Duration::from_millis(100), others, Instant::FAR),
            Succession::Yield => Cohort::new(now, others, now),
        };
        let front = self.waiters.front().filter(|_| succession == Succession::HandOver)?;
        let left = lease.deadline().max(grant.valid_until) - now;
        let settings = Settings { expire: left, ..front.settings };
        let suited = Arc::new(Waiter::new(settings, None, front.patience, front.end));
        self.waiters.replace_front(&suited);
        Some(suited)
    }
}
