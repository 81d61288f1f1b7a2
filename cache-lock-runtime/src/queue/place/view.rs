//! What a replay of the model sees of a place, and how it makes a cohort's decision.

use std::{sync::Arc, time::Duration};

use super::{
    Place,
    phase::{Asking, Hold, Phase, Registered},
};
use crate::{
    clock::Moment,
    lease::Lease,
    options::Settings,
    owner::OwnerToken,
    queue::{
        cohort::{Cohort, Turn},
        waiter::Waiter,
    },
};

/// How far the manager has come.
#[derive(Debug)]
pub(in crate::queue) enum Seen {
    Idle,
    Asking { token: OwnerToken, instead_of: Option<OwnerToken>, granted: bool },
    Registered { token: OwnerToken, instead_of: Option<OwnerToken>, due: Moment },
    Holding { token: OwnerToken, lease: Arc<Lease>, left: usize },
    Releasing(OwnerToken),
    Aside(Moment),
}

impl Place {
    pub(in crate::queue) fn seen(&self) -> Seen {
        match &self.phase {
            Phase::Idle => Seen::Idle,
            Phase::Asking(Asking { token, instead_of, granted, .. }) => {
                let (token, instead_of) = (token.clone(), instead_of.clone());
                Seen::Asking { token, instead_of, granted: *granted }
            }
            Phase::Registered(Registered { token, instead_of, due, .. }) => {
                let (token, instead_of) = (token.clone(), instead_of.clone());
                Seen::Registered { token, instead_of, due: *due }
            }
            Phase::Holding(Hold { tenure, lease, .. }) => {
                let mut numbers = tenure.numbers;
                let left = std::iter::from_fn(|| numbers.take()).count();
                Seen::Holding { token: tenure.token.clone(), lease: Arc::clone(lease), left }
            }
            Phase::Releasing(releasing) => Seen::Releasing(releasing.token.clone()),
            Phase::Aside(until) => Seen::Aside(*until),
        }
    }

    pub(in crate::queue) fn waiters(&self) -> usize {
        self.waiters.len()
    }

    /// Has the section's cohort decide in this way if the section ends `now`. In the model each is
    /// free to be taken; here each has its times. What is left of a lease has to suit the waiter to
    /// whom it is handed, so that one is replaced by one whom it suits, and returned.
    pub(in crate::queue) fn decide(&mut self, turn: Turn, now: Moment) -> Option<Arc<Waiter>> {
        let Phase::Holding(Hold { tenure, lease, .. }) = &mut self.phase else { return None };
        let others = tenure.cohort.others;
        tenure.cohort = match turn {
            Turn::Next => Cohort::new(now, others, Moment::FAR),
            Turn::Pass => Cohort::new(now.before(Duration::from_millis(100)), others, Moment::FAR),
            Turn::Free => Cohort::new(now, others, now),
        };
        let front = self.waiters.front().filter(|_| turn == Turn::Next)?;
        let left = now.until(lease.deadline().max(tenure.valid_until));
        let settings = Settings { expire: left, ..front.settings };
        let suited = Arc::new(Waiter::new(settings, None, front.patience, front.end));
        self.waiters.replace_front(&suited);
        Some(suited)
    }
}
