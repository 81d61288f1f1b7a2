//! How far a manager has come with a key. The names are those of `docs/protocol.md`.

use std::{sync::Arc, time::Duration};

use super::{
    cohort::Cohort,
    effects::{Env, TakeOver},
    messages::RequestKind,
    waiter::Waiter,
};
use crate::{
    clock::Instant,
    fence::{FencingToken, Numbers},
    lease::{Grant, Lease, valid_until},
    options::Settings,
    owner::OwnerToken,
};

#[derive(Debug)]
pub(super) enum Phase {
    Idle,
    /// A request is out.
    Asking(Pending),
    /// A request is out that releases the old token as well.
    Passing(Pending),
    /// The lock is another holder's, or the server cannot be asked.
    Registered(Registered),
    /// The lock is held, and a section runs.
    Holding(Hold),
    /// A release is out, and no caller waits.
    Releasing(Releasing),
    /// The lock was left free, and no caller waits. A caller that comes before this time leaves it to
    /// other managers.
    Yielded(Instant),
}

impl Phase {
    /// The request that is out.
    pub(super) fn pending(&self) -> Option<&Pending> {
        match self {
            Self::Asking(pending) | Self::Passing(pending) => Some(pending),
            _ => None,
        }
    }

    pub(super) fn pending_mut(&mut self) -> Option<&mut Pending> {
        match self {
            Self::Asking(pending) | Self::Passing(pending) => Some(pending),
            _ => None,
        }
    }

    /// The request that is out under a token.
    pub(super) fn pending_under(&mut self, token: &OwnerToken) -> Option<&mut Pending> {
        self.pending_mut().filter(|pending| pending.token == *token)
    }
}

/// A request that is out.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) token: OwnerToken,
    pub(super) kind: RequestKind,
    pub(super) expire: Duration,
    /// When it was sent; `None` while its connection has no room for it.
    pub(super) sent: Option<Instant>,
    /// The waiter whose future drives the request, if no task does.
    pub(super) asker: Option<Arc<Waiter>>,
    /// The request before it failed with its connection.
    pub(super) repeated: bool,
    /// A grant to the token was pushed, of which the answer may not know.
    pub(super) granted: bool,
    /// A push told of another manager that waits, of which the answer may not know.
    pub(super) others: bool,
}

impl Pending {
    /// Has the driver take over the request, which is on the connection of the asker's runtime.
    pub(super) fn take_over(&mut self, env: &Env<'_>) -> Option<TakeOver> {
        let waiter = self.asker.take()?;
        let patience = env.polled_within(self.expire);
        Some(TakeOver { waiter, token: self.token.clone(), patience })
    }

    /// The lock is free if this request gets it: no holder has handed it on.
    pub(super) fn would_find_it_free(&self) -> bool {
        !self.granted && matches!(self.kind, RequestKind::New | RequestKind::Again)
    }
}

/// See [`Phase::Registered`].
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) token: OwnerToken,
    /// How to ask the next time. `Again`: the token is on the waiting list.
    pub(super) kind: RequestKind,
    pub(super) expire: Duration,
    /// When to ask again if nothing happens.
    pub(super) due: Instant,
}

/// See [`Phase::Releasing`].
#[derive(Debug)]
pub(super) struct Releasing {
    pub(super) token: OwnerToken,
    /// It leaves the lock free for a moment.
    pub(super) yields: bool,
}

/// See [`Phase::Holding`].
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) grant: HeldGrant,
    pub(super) lease: Arc<Lease>,
    /// The waiter that was handed the lease, and the time by which it must be polled.
    pub(super) handed: Option<(Arc<Waiter>, Instant)>,
}

/// What lasts from one section to the next.
#[derive(Debug)]
pub(super) struct HeldGrant {
    pub(super) token: OwnerToken,
    /// The length of the lease that was asked for.
    pub(super) expire: Duration,
    pub(super) valid_until: Instant,
    pub(super) numbers: Numbers,
    pub(super) cohort: Cohort,
}

impl HeldGrant {
    /// Whether the rest of the lease suits a waiter. A longer rest than it asks for would keep the lock from
    /// others for longer if it crashes. The renewal, which begins at once, makes up for a shorter one;
    /// without renewal nearly all must be left.
    pub(super) fn suits(&self, settings: &Settings, now: Instant) -> bool {
        let asked = valid_until(now, settings.expire) - now;
        let least = if settings.renew { asked / 2 } else { asked / 10 * 9 };
        let left = self.valid_until - now;
        !self.numbers.is_empty() && left >= least && left <= settings.expire
    }

    pub(super) fn lease(
        &self,
        env: &Env<'_>,
        settings: Settings,
        enclosing: Option<Arc<Lease>>,
        fence: FencingToken,
        acquired: Instant,
    ) -> Arc<Lease> {
        Arc::new(Lease::new(Grant {
            key: env.key.clone(),
            owner: self.token.clone(),
            fence,
            settings,
            acquired,
            deadline: self.valid_until,
            manager: env.manager,
            enclosing,
        }))
    }
}
