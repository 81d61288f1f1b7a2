//! How far a manager has come with a key.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use super::{Scene, TakeOver};
use crate::{
    clock::Moment,
    fence::{FencingToken, Numbers},
    lease::{Grant, Lease, valid_until},
    options::Settings,
    owner::OwnerToken,
    queue::{cohort::Cohort, waiter::Waiter},
};

#[derive(Debug)]
pub(super) enum Phase {
    Idle,
    Asking(Asking),
    Registered(Registered),
    Holding(Hold),
    /// A release is on its way, and nobody waits.
    Releasing(Releasing),
    /// The lock was left free, and nobody waits. Who comes before this time leaves it to others.
    Aside(Moment),
}

/// A question is out.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) token: OwnerToken,
    pub(super) instead_of: Option<OwnerToken>,
    pub(super) expire: Duration,
    /// When it was sent; `None` while its connection has no room for it.
    pub(super) sent: Option<Moment>,
    /// The token was on the waiting list when it was asked under.
    pub(super) listed: bool,
    /// A grant to the token was read, of which the answer may not know.
    pub(super) granted: bool,
    /// The lock is passed on, or was granted to the token before it was asked under.
    pub(super) handed: bool,
    /// Somebody else waits, of whom the answer may not know.
    pub(super) others: bool,
    /// The question before it failed with its connection.
    pub(super) again: bool,
    /// Whose future drives the question, if no task does.
    pub(super) asker: Option<Arc<Waiter>>,
}

/// The lock is somebody else's, or the server cannot be asked.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) token: OwnerToken,
    /// A token that is over, and may still hold the lock.
    pub(super) instead_of: Option<OwnerToken>,
    pub(super) expire: Duration,
    /// The token is on the waiting list.
    pub(super) listed: bool,
    /// When to ask again if nothing happens.
    pub(super) due: Moment,
}

/// See [`Phase::Releasing`].
#[derive(Debug)]
pub(super) struct Releasing {
    pub(super) token: OwnerToken,
    /// It leaves the lock free for a moment.
    pub(super) aside: bool,
}

/// The lock is ours, and a section runs.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) tenure: Tenure,
    pub(super) lease: Arc<Lease>,
    /// Who was handed the lease, and by when it must be polled.
    pub(super) handed: Option<(Arc<Waiter>, Moment)>,
}

/// What lasts from one section to the next.
#[derive(Debug)]
pub(super) struct Tenure {
    pub(super) token: OwnerToken,
    /// What was asked for.
    pub(super) expire: Duration,
    pub(super) valid_until: Moment,
    pub(super) numbers: Numbers,
    pub(super) cohort: Cohort,
}

/// How a question is asked.
pub(super) struct Ask {
    pub(super) token: OwnerToken,
    pub(super) instead_of: Option<OwnerToken>,
    /// The lock is left free for a moment.
    pub(super) aside: bool,
    /// The lock was granted to the token.
    pub(super) granted: bool,
    pub(super) listed: bool,
    pub(super) again: bool,
    pub(super) asker: Option<Arc<Waiter>>,
}

impl Ask {
    /// Under a token that is known to the server.
    pub(super) fn again(token: OwnerToken) -> Self {
        Self {
            token,
            instead_of: None,
            aside: false,
            granted: false,
            listed: true,
            again: false,
            asker: None,
        }
    }

    /// Under a new token.
    pub(super) fn anew(scene: &Scene<'_>, instead_of: Option<OwnerToken>) -> Self {
        Self { instead_of, listed: false, ..Self::again(scene.owners.next()) }
    }
}

impl Asking {
    /// Has the driver take over the question, which is on the connection of the asker's runtime.
    pub(super) fn take_over(&mut self, scene: &Scene<'_>) -> Option<TakeOver> {
        let waiter = self.asker.take()?;
        let patience = scene.polled_within(self.expire);
        Some(TakeOver { waiter, token: self.token.clone(), patience })
    }
}

impl Tenure {
    /// Whether what is left suits a waiter. More than it asks for would keep the lock from others
    /// for longer, if it crashes. Less is made up for by the renewal, which begins at once; so
    /// without one nearly all must be left.
    pub(super) fn suits(&self, settings: &Settings, now: Moment) -> bool {
        let asked = now.until(valid_until(now, settings.expire));
        let least = if settings.renew { asked / 2 } else { asked / 10 * 9 };
        let left = now.until(self.valid_until);
        !self.numbers.is_empty() && left >= least && left <= settings.expire
    }

    pub(super) fn lease(
        &self,
        scene: &Scene<'_>,
        settings: Settings,
        enclosing: Option<Arc<Lease>>,
        fence: FencingToken,
        acquired: Moment,
    ) -> Arc<Lease> {
        Arc::new(Lease::new(Grant {
            key: scene.key.clone(),
            seat: scene.seat.map_or_else(Weak::new, Arc::downgrade),
            owner: self.token.clone(),
            fence,
            settings,
            acquired,
            deadline: self.valid_until,
            manager: scene.manager,
            enclosing,
        }))
    }
}
