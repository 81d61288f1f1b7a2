//! What managers and stores say to each other.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::{clock::Instant, error::BackendError, fence::Numbers, key::LockKey, owner::OwnerToken};

/// A request for a lock.
#[derive(Clone, Debug)]
pub(crate) struct AcquireRequest {
    pub(crate) key: LockKey,
    pub(crate) token: OwnerToken,
    pub(crate) kind: RequestKind,
    pub(crate) expire: Duration,
    /// The number of fencing numbers to reserve.
    pub(crate) block: u32,
    /// The token joins the waiting list if the lock is taken.
    #[cfg_attr(
        not(feature = "redis"),
        expect(dead_code, reason = "only Redis has a waiting list")
    )]
    pub(crate) wait: bool,
}

/// How a lock is asked for.
#[derive(Clone, Debug)]
pub(crate) enum RequestKind {
    /// Under a token that is on no waiting list.
    New,
    /// Under a token that may be on the waiting list.
    Again,
    /// Under a token to which the lock was granted.
    Claim,
    /// In one step with the release of an old token. The first of the waiting list gets the lock; if the
    /// list is empty, the asker does.
    Pass(ReleaseRequest),
}

impl RequestKind {
    /// The token whose release is part of the request.
    pub(crate) fn old(&self) -> Option<&OwnerToken> {
        match self {
            Self::Pass(old) => Some(&old.token),
            Self::New | Self::Again | Self::Claim => None,
        }
    }

    /// How to ask again after a refusal. The moment for a yield, or for a claim, is over by then.
    pub(crate) fn retried(self) -> Self {
        match self {
            Self::Pass(old) => Self::Pass(ReleaseRequest { yields: false, ..old }),
            Self::Claim => Self::Again,
            kind => kind,
        }
    }

    /// The token may be on the waiting list.
    pub(crate) fn may_be_listed(&self) -> bool {
        matches!(self, Self::Again | Self::Claim)
    }
}

/// The answer to an [`AcquireRequest`].
#[derive(Clone, Debug)]
pub(crate) enum AcquireResponse {
    Got {
        numbers: Numbers,
        /// When the request was sent: the lease counts from here.
        sent_at: Instant,
        /// Other managers wait for the lock.
        others: bool,
    },
    Busy {
        /// How long the holder's lease lasts if it is not extended; `None` if it has no end.
        remaining: Option<Duration>,
        /// The holder is a manager of this protocol, which hands the lock over to its waiters.
        ours: bool,
        /// The token is on the waiting list, and its manager is told when its turn comes.
        listed: bool,
    },
    /// The lock was free when the answer was given, and the asker did not take it.
    Free { listed: bool },
}

/// How far an [`AcquireRequest`] has come that did not go out at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "only a connection delays requests"))]
pub(crate) enum Progress {
    /// The connection has no room for it yet.
    Delayed,
    Sent,
}

/// A request for a lock that was not answered, or was refused.
#[derive(Debug)]
pub(crate) struct AcquireError {
    pub(crate) error: BackendError,
    pub(crate) fate: Fate,
}

/// What may have become of a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "only a connection loses requests"))]
pub(crate) enum Fate {
    /// It was not carried out.
    Refused,
    /// It may have been carried out, or may be at any later time. The store takes back what it
    /// takes; its tokens are over.
    Unanswered,
    /// The same, and the connection is over: it may have been broken for long.
    Broken,
    /// The same, before its time was over: it is on the connection of a runtime that may be blocked.
    Abandoned,
}

/// A lease to be extended.
#[derive(Clone, Debug)]
pub(crate) struct Extension {
    pub(crate) key: LockKey,
    pub(crate) token: OwnerToken,
    /// How long it is to last from now.
    pub(crate) expire: Duration,
}

/// What became of an [`Extension`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extended {
    Kept,
    /// The record is missing, or another holder's.
    Gone,
}

/// The end of a lease or of a wait.
#[derive(Clone, Debug)]
pub(crate) struct ReleaseRequest {
    pub(crate) token: OwnerToken,
    /// The length of its lease.
    pub(crate) expire: Duration,
    /// When the record of the token has run out: a release after that has no use.
    pub(crate) lasts: Instant,
    /// The lock is not handed to the first of the waiting list, but left free for a moment.
    pub(crate) yields: bool,
}

impl ReleaseRequest {
    pub(crate) fn new(token: OwnerToken, expire: Duration, lasts: Instant) -> Self {
        Self { token, expire, lasts, yields: false }
    }
}

/// What a release found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReleaseOutcome {
    /// The lock was held to the end, and is free now, or its next holder's.
    Released,
    /// The lease had ended before: another holder may have had the lock since.
    AlreadyExpired,
    /// The connection broke before the answer came, and the next try found the lock gone: this call has
    /// released it, or the lease had ended before.
    Unknown,
}

/// What a store tells a manager unasked. Hints: they may be lost, late or doubled, and overtake
/// the answers to requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "only Redis has pushes"))]
pub(crate) enum Push {
    /// The lock was granted to the token, for as long as it may take to claim it.
    Grant { key: LockKey, token: String },
    /// Another manager waits for the lock that is held under the token.
    Demand { key: LockKey, token: String },
    /// The holder yields: the lock is left free for a moment, and the token's turn is after that.
    Yielded { key: LockKey, token: String },
    /// Pushes may have been lost.
    Missed,
}

/// Where a manager's pushes arrive.
pub(crate) type Inbox = mpsc::UnboundedReceiver<Push>;
