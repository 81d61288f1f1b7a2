//! Fencing tokens.

use std::fmt;

/// The number of a grant: greater than the numbers of all earlier grants of the same key.
///
/// A lock that lives on another machine can be lost without its holder noticing in time: a process
/// that was stopped for longer than its lease wakes up and writes. The resource that is written to
/// can tell: it remembers the greatest token it has seen, and refuses smaller ones. With MongoDB,
/// where each document begins with `fence: 0`, that is one condition in every update:
///
/// ```
/// # use cache_lock::{LockManager, LockKey, LockOptions};
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let locks = LockManager::in_memory();
/// let lock = locks.acquire(LockKey::new("item").part(7), &LockOptions::new()).await?;
/// let token = lock.token().as_i64();
/// // The first write of a hold raises the fence, and returns what is decided by: from here on
/// // every older holder is refused.
/// // let item = items.find_one_and_update(
/// //     doc! { "_id": 7, "fence": { "$lte": token } },
/// //     doc! { "$set": { "fence": token } },
/// // );
/// // Each later write has the same condition.
/// // items.update_one(
/// //     doc! { "_id": 7, "fence": { "$lte": token } },
/// //     doc! { "$set": { "stock": item.stock - 1, "fence": token } },
/// // );
/// # assert!(token > 0);
/// # Ok::<(), cache_lock::LockError>(()) }).unwrap();
/// ```
///
/// It starts from the server's clock in microseconds, so that it goes on rising after the server
/// lost its data, and stays below 2^53, so that every JSON and JavaScript client can carry it.
///
/// The use of such numbers with locks is described by Martin Kleppmann, *How to do distributed
/// locking* (2016), and by Burrows, *The Chubby lock service* (2006), as "sequencers".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(i64);

impl FencingToken {
    pub(crate) fn new(number: i64) -> Self {
        Self(number)
    }

    /// The token as the signed 64-bit integer that databases store. Always positive.
    #[must_use]
    pub const fn as_i64(self) -> i64 {
        self.0
    }
}

/// Fencing numbers that were reserved and not given out yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    next: i64,
    last: i64,
}

impl Numbers {
    /// From `low` to `high`, both included.
    pub(crate) fn new(low: i64, high: i64) -> Self {
        Self { next: low, last: high }
    }

    pub(crate) fn take(&mut self) -> Option<FencingToken> {
        let number = (self.next <= self.last).then_some(self.next)?;
        self.next += 1;
        Some(FencingToken::new(number))
    }

    pub(crate) fn is_empty(self) -> bool {
        self.next > self.last
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<FencingToken> for i64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for FencingToken {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for FencingToken {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <i64 as serde::Deserialize>::deserialize(deserializer).map(Self)
    }
}
