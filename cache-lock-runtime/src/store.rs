//! Where locks are kept.

use std::{fmt::Debug, time::Duration};

use tokio::{runtime::Handle, sync::mpsc};

use crate::{clock::Moment, error::BackendError, fence::Numbers, key::LockKey, owner::OwnerToken};

pub(crate) mod memory;
#[cfg(feature = "redis")]
pub(crate) mod redis;

/// A request for a lock.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) key: LockKey,
    pub(crate) token: OwnerToken,
    /// A token that is over, and that hands over what it may hold in the same step: whoever waits
    /// has it first, and if nobody does, the asker.
    pub(crate) instead_of: Option<OwnerToken>,
    /// When the record of that token has run out.
    pub(crate) lasts: Moment,
    /// What that token holds is left free for a moment instead.
    pub(crate) aside: bool,
    pub(crate) expire: Duration,
    /// How many fencing numbers are asked for.
    pub(crate) block: u32,
    /// Enter the waiting list if the lock is not to be had.
    pub(crate) wait: bool,
    /// The token may be on the waiting list already.
    pub(crate) listed: bool,
}

/// The answer to a [`Question`].
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Got {
        numbers: Numbers,
        /// When the request was sent: the lease counts from here.
        sent_at: Moment,
        /// Somebody else waits for the lock.
        others: bool,
    },
    Busy {
        /// How long the holder's lease lasts if it is not extended; `None` if it has no end.
        remaining: Option<Duration>,
        /// The holder is a manager like this one, which hands the lock over to who waits.
        ours: bool,
        /// The asker stands in the waiting list, and is told when its turn comes.
        listed: bool,
    },
    /// The lock was free when the answer was given, and the asker did not take it.
    Free { listed: bool },
}

/// How far a [`Question`] has come that did not go out at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The connection has no room for it yet.
    Delayed,
    Sent,
}

/// A question that was not answered, or was refused.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: BackendError,
    pub(crate) fate: Fate,
}

/// What may have become of a question that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The record is not there, or somebody else's.
    Gone,
}

/// A token whose lease or wait is over.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) token: OwnerToken,
    /// How long its lease was to last.
    pub(crate) expire: Duration,
    /// When the record of the token has run out: the release is of no use any more.
    pub(crate) lasts: Moment,
    /// The lock is not handed to who waits, but left free for a moment.
    pub(crate) aside: bool,
}

impl Ended {
    pub(crate) fn new(token: OwnerToken, expire: Duration, lasts: Moment) -> Self {
        Self { token, expire, lasts, aside: false }
    }
}

/// What a release found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReleaseOutcome {
    /// The lock was ours to the end, and is free now, or its next holder's.
    Released,
    /// The lease had ended before: somebody else may have held the lock since.
    AlreadyExpired,
    /// The connection broke before the answer came, and by the next try the lock was not ours any
    /// more: this call has released it, or the lease had ended before.
    Unknown,
}

/// The record of a single flight's value: each version of a key's values has its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RecordName {
    pub(crate) key: LockKey,
    pub(crate) version: u32,
}

#[cfg(feature = "redis")]
impl RecordName {
    /// In Redis. Version 0 has the plain name, `room:{room}:result`, and version 2 has
    /// `room:{room}:v2:result`. The last part is the same, so no key of a lock can have this name, and
    /// the digit before it tells it from all records without a version.
    pub(crate) fn in_redis(&self) -> String {
        let mut name = self.key.result_key().to_string();
        if self.version != 0
            && let Some(end) = name.rfind(':')
        {
            name.insert_str(end, &format!(":v{}", self.version));
        }
        name
    }
}

/// A value that a single flight has recorded, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) text: Vec<u8>,
    /// How long the record lasts; zero if that was not asked for.
    pub(crate) remaining: Duration,
}

/// What a store tells a manager unasked. Hints: they may be lost, late or doubled, and overtake
/// the answers to questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// The lock was granted to the token, for as long as it may take to claim it.
    Grant { key: LockKey, token: String },
    /// Somebody waits for the lock that is held under the token.
    Demand { key: LockKey, token: String },
    /// The lock is left free for a moment, and it is the token's turn after that.
    Soon { key: LockKey, token: String },
    /// Pushes may have been lost.
    Missed,
}

/// Where a manager's pushes arrive.
pub(crate) type Inbox = mpsc::UnboundedReceiver<Push>;

/// The stores, in one type: dispatch without boxing a future per call.
///
/// It is not public, and no trait: a store has to keep promises about atomicity, order and time
/// that cannot be written down as one. One suite of tests runs on all of them.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    /// In this process.
    Memory(memory::MemoryStore),
    /// On a Redis server.
    #[cfg(feature = "redis")]
    Redis(redis::RedisStore),
}

impl Store {
    /// The store that answers at once, if it is that one.
    pub(crate) fn memory(&self) -> Option<&memory::MemoryStore> {
        match self {
            Self::Memory(store) => Some(store),
            #[cfg(feature = "redis")]
            Self::Redis(_) => None,
        }
    }

    /// Asks for a lock, over the connection of a runtime or, without one, of the driver. Waits until
    /// the connection has room for the question, and from then on for the time of an attempt.
    /// `progress` is told of the first, if it comes to that, and then of the second.
    ///
    /// # Cancel safety
    /// Dropped before its answer, what it may have taken is taken back in the background, and its
    /// tokens are over.
    pub(crate) async fn ask(
        &self,
        question: &Question,
        runtime: Option<&Handle>,
        progress: &impl Fn(Progress),
    ) -> Result<Reply, Failed> {
        match self {
            Self::Memory(store) => Ok(store.ask(question)),
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.ask(question, runtime, progress).await,
        }
    }

    /// Waits until a runtime's connection stands still while the server answers over another one, for
    /// `patience` at least.
    pub(crate) async fn stalled(&self, runtime: &Handle, patience: Duration) {
        match self {
            Self::Memory(_) => std::future::pending().await,
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.stalled(runtime, patience).await,
        }
    }

    /// Extends leases so that each lasts for its time from now, if it would end sooner. Never
    /// creates a record. Answers in the order of the leases, and tells when the request was sent.
    ///
    /// At `overdue` it calls `on_overdue`, and goes on waiting for the answer until `give_up`.
    pub(crate) async fn extend(
        &self,
        leases: &[Extension],
        overdue: Moment,
        on_overdue: impl FnOnce(&BackendError),
        give_up: Moment,
    ) -> Result<(Moment, Vec<Extended>), BackendError> {
        match self {
            Self::Memory(store) => Ok(store.extend(leases)),
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.extend(leases, overdue, on_overdue, give_up).await,
        }
    }

    /// Ends a lease or a wait: the lock is its next holder's, or free.
    pub(crate) async fn release(
        &self,
        key: &LockKey,
        ended: &Ended,
        give_up: Moment,
    ) -> Result<ReleaseOutcome, BackendError> {
        match self {
            Self::Memory(store) => Ok(store.release(key, &ended.token)),
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.release(key, ended, give_up).await,
        }
    }

    /// The same, tried again until there is an answer or the record has run out.
    pub(crate) async fn release_at_last(&self, key: &LockKey, ended: &Ended) {
        match self {
            Self::Memory(store) => drop(store.release(key, &ended.token)),
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.release_at_last(key, ended).await,
        }
    }

    /// The value recorded beside a lock, and with `aged` how long it lasts.
    pub(crate) async fn recorded(
        &self,
        name: &RecordName,
        aged: bool,
        give_up: Moment,
    ) -> Result<Option<Recorded>, BackendError> {
        match self {
            Self::Memory(store) => Ok(store.recorded(name)),
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.recorded(name, aged, give_up).await,
        }
    }

    /// Records a value beside a lock for so long, if the lock is held under the token. Says whether
    /// it was.
    pub(crate) async fn record(
        &self,
        name: &RecordName,
        token: &OwnerToken,
        text: &str,
        lasts: Duration,
        give_up: Moment,
    ) -> Result<bool, BackendError> {
        match self {
            Self::Memory(store) => Ok(store.record(name, token, text, lasts)),
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.record(name, token, text, lasts, give_up).await,
        }
    }

    /// Where it is, without a password.
    pub(crate) fn server(&self) -> &str {
        match self {
            Self::Memory(_) => "memory",
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.server(),
        }
    }

    /// Has the driver's connection opened, and tries until `until`. For the driver.
    pub(crate) async fn reconnect(&self, until: Moment) {
        match self {
            Self::Memory(_) => {}
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.reconnect(until).await,
        }
    }

    /// Waits until a connection was lost, or opened after that: the store may have lost its data.
    pub(crate) async fn reconnected(&self) {
        match self {
            Self::Memory(_) => std::future::pending().await,
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.reconnected().await,
        }
    }

    /// Makes ready for pushes, if the store has any and is not ready yet.
    pub(crate) fn attend(&self) {
        match self {
            Self::Memory(_) => {}
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.attend(),
        }
    }

    /// Whether this manager is told by push of what happens to its keys, as far as is known: it does
    /// not listen before callers of one process contend for a lock.
    pub(crate) fn tells(&self) -> bool {
        match self {
            Self::Memory(_) => true,
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.tells(),
        }
    }
}
