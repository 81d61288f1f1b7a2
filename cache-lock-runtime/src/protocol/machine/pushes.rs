//! What a push changes.

use super::Machine;
use crate::{
    options::MAX_EXPIRE,
    owner::OwnerToken,
    protocol::{
        messages::{ReleaseRequest, RequestKind},
        phase::{Phase, Registered},
    },
};

impl Machine<'_> {
    /// A grant was pushed.
    pub(crate) fn granted(&mut self, token: OwnerToken) {
        match &mut self.queue.phase {
            Phase::Registered(registered) if registered.token == token => {
                self.ask(token, RequestKind::Claim);
            }
            Phase::Asking(pending) | Phase::Passing(pending) if pending.token == token => {
                pending.granted = true;
            }
            Phase::Holding(hold) if hold.grant.token == token => {}
            // The release that is out hands it on.
            Phase::Releasing(releasing) if releasing.token == token => {}
            _ => self.forget(token),
        }
    }

    /// A push told that the holder yields, and that the token's turn is next.
    pub(crate) fn yielded(&mut self, token: OwnerToken) {
        match &mut self.queue.phase {
            Phase::Registered(registered) if registered.token == token => {
                let due = self.queue.backoff.in_yield(self.env.now);
                registered.due = registered.due.min(due);
            }
            // The answer that is on its way may be older, and the pause is short enough.
            _ => self.granted(token),
        }
    }

    /// A push told that another manager waits.
    pub(crate) fn demanded(&mut self, token: OwnerToken) {
        match &mut self.queue.phase {
            Phase::Holding(hold) if hold.grant.token == token => hold.grant.cohort.others = true,
            Phase::Asking(pending) | Phase::Passing(pending)
                if pending.token == token || pending.kind.old() == Some(&token) =>
            {
                pending.others = true;
            }
            Phase::Releasing(releasing) if releasing.token == token => {}
            // A grant whose push was lost. The next request is under this token, so it must not be
            // released: the release could be carried out after that request, and free what it got.
            Phase::Registered(registered) if registered.token == token => {}
            _ => self.forget(token),
        }
    }

    /// Pushes may have been lost.
    pub(crate) fn missed_pushes(&mut self) {
        match &mut self.queue.phase {
            Phase::Registered(Registered {
                kind: RequestKind::Again | RequestKind::Claim,
                due,
                ..
            }) => {
                *due = self.env.now;
            }
            // The first of the waiting list may not have been told of the yield.
            Phase::Releasing(releasing) => releasing.yields = false,
            _ => {}
        }
    }

    /// Releases a token that is over and has the lock all the same. A request that came late may have taken
    /// it, so the length of its lease is not known here.
    fn forget(&mut self, token: OwnerToken) {
        let lasts = self.env.now + MAX_EXPIRE;
        self.effects.release = Some(ReleaseRequest::new(token, self.env.attempt, lasts));
    }
}
