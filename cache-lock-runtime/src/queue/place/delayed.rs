//! What a place does about a question that its connection has no room for yet.

use super::{Effects, Place, Scene, phase::Phase};
use crate::owner::OwnerToken;

impl Place {
    /// The asker does not drive its question any longer. If no waiter needs the answer, what was not
    /// sent is not sent: the store ends the tokens that the question was to end.
    pub(super) fn let_go(&mut self, scene: &Scene<'_>, effects: &mut Effects) {
        let Phase::Asking(asking) = &mut self.phase else { return };
        if self.waiters.is_empty() && asking.sent.is_none() {
            effects.cancel = asking.asker.take();
            if effects.cancel.is_some() {
                self.phase = Phase::Idle;
            }
        } else if let Some(take_over) = asking.take_over(scene) {
            // One that has just joined may have taken it over already.
            effects.take_over = Some(take_over);
        }
    }

    /// The connection has no room for the question yet.
    pub(crate) fn delayed(&mut self, token: &OwnerToken, effects: &mut Effects) {
        if let Phase::Asking(asking) = &mut self.phase
            && asking.token == *token
        {
            asking.sent = None;
            effects.postponed = true;
        }
    }

    /// A question that was delayed is sent now.
    pub(crate) fn sent(&mut self, scene: &Scene<'_>, token: &OwnerToken) {
        if let Phase::Asking(asking) = &mut self.phase
            && asking.token == *token
        {
            asking.sent = Some(scene.now);
            self.lasts = self.lasts.max(scene.now.after(asking.expire));
        }
    }
}
