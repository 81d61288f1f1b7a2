//! What a place does when it is told something unasked.

use super::{
    Ask, Effects, Place, Scene,
    phase::{Phase, Registered},
};
use crate::{options::MAX_EXPIRE, owner::OwnerToken, store::Ended};

impl Place {
    /// A grant was pushed.
    pub(crate) fn granted(&mut self, scene: &Scene<'_>, token: OwnerToken, effects: &mut Effects) {
        match &mut self.phase {
            Phase::Registered(registered) if registered.token == token => {
                let ask = Ask { granted: true, ..Ask::again(token) };
                self.ask(scene, ask, effects);
            }
            Phase::Asking(asking) if asking.token == token => asking.granted = true,
            Phase::Holding(hold) if hold.tenure.token == token => {}
            // The release that is on its way hands it on.
            Phase::Releasing(releasing) if releasing.token == token => {}
            _ => effects.release = Some(unknown(scene, token)),
        }
    }

    /// It was pushed that the lock is left free for a moment, and the token's turn is next.
    pub(crate) fn left_free(
        &mut self,
        scene: &Scene<'_>,
        token: OwnerToken,
        effects: &mut Effects,
    ) {
        match &mut self.phase {
            Phase::Registered(registered) if registered.token == token => {
                registered.due = registered.due.min(self.pace.standing_back(scene.now));
            }
            // The answer that is on its way may be older, and the pause is short enough.
            _ => self.granted(scene, token, effects),
        }
    }

    /// It was pushed that somebody else waits.
    pub(crate) fn demanded(&mut self, scene: &Scene<'_>, token: OwnerToken, effects: &mut Effects) {
        match &mut self.phase {
            Phase::Holding(hold) if hold.tenure.token == token => {
                hold.tenure.cohort.others = true;
            }
            Phase::Asking(asking)
                if asking.token == token || asking.instead_of.as_ref() == Some(&token) =>
            {
                asking.others = true;
            }
            Phase::Releasing(releasing) if releasing.token == token => {}
            // A grant whose push was lost. It will be asked under again, so it must not be released:
            // the release could be carried out after that, and free what is held by then.
            Phase::Registered(registered) if registered.token == token => {}
            _ => effects.release = Some(unknown(scene, token)),
        }
    }

    /// Pushes may have been lost.
    pub(crate) fn missed_pushes(&mut self, scene: &Scene<'_>) {
        match &mut self.phase {
            Phase::Registered(Registered { listed: true, due, .. }) => *due = scene.now,
            // Nobody may have been told of it.
            Phase::Releasing(releasing) => releasing.aside = false,
            _ => {}
        }
    }
}

/// A token that is over and has the lock all the same. A request that came late may have taken it, so
/// the length of its lease is not known here.
fn unknown(scene: &Scene<'_>, token: OwnerToken) -> Ended {
    Ended::new(token, scene.attempt, scene.now.after(MAX_EXPIRE))
}
