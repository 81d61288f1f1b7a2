//! A request that its connection has no room for yet.

use super::Machine;
use crate::{owner::OwnerToken, protocol::phase::Phase};

impl Machine<'_> {
    /// The asker does not drive its request any longer. If no waiter needs the answer, a request that was
    /// not sent is dropped: the store ends the token that it was to release.
    pub(super) fn let_go(&mut self) {
        let Some(pending) = self.queue.phase.pending_mut() else { return };
        if self.queue.waiters.is_empty() && pending.sent.is_none() {
            self.effects.cancel = pending.asker.take();
            if self.effects.cancel.is_some() {
                self.queue.phase = Phase::Idle;
            }
        } else if let Some(take_over) = pending.take_over(self.env) {
            // A waiter that has just joined may have had it taken over already.
            self.effects.take_over = Some(take_over);
        }
    }

    /// The connection has no room for the request yet.
    pub(crate) fn delayed(&mut self, token: &OwnerToken) {
        if let Some(pending) = self.queue.phase.pending_under(token) {
            pending.sent = None;
            self.effects.postponed = true;
        }
    }

    /// A delayed request is sent.
    pub(crate) fn sent(&mut self, token: &OwnerToken) {
        let now = self.env.now;
        if let Some(pending) = self.queue.phase.pending_under(token) {
            pending.sent = Some(now);
            self.queue.lasts = self.queue.lasts.max(now + pending.expire);
        }
    }
}
