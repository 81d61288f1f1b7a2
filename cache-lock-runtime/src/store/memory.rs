//! Locks in this process's memory: the embedded default, and what tests use.

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use super::Store;
use crate::{
    clock::Instant,
    fence::Numbers,
    key::LockKey,
    mutex::Mutex,
    owner::OwnerToken,
    protocol::messages::{
        AcquireRequest, AcquireResponse, Extended, Extension, ReleaseOutcome, RequestKind,
    },
};

#[cfg(all(feature = "serde", feature = "single-flight"))]
mod values;

/// Keeps locks in memory. Clones share them, so several managers can stand for several processes
/// in a test.
///
/// ```
/// use cache_lock::{LockManager, LockOptions, MemoryStore};
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = MemoryStore::new();
/// let here = LockManager::builder().in_memory(store.clone())?;
/// let there = LockManager::builder().in_memory(store)?;
///
/// let _guard = here.acquire("job", &LockOptions::new()).await?;
/// assert!(there.try_acquire("job", &LockOptions::new()).await?.is_none());
/// # Ok::<(), cache_lock::LockError>(()) }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct MemoryStore {
    records: Arc<Mutex<Records>>,
}

#[derive(Default)]
struct Records {
    by_key: HashMap<LockKey, LockRecord>,
    /// The last fencing number, of all keys together: so nothing is kept of idle ones.
    last_fence: i64,
    #[cfg(all(feature = "serde", feature = "single-flight"))]
    values: values::Values,
}

struct LockRecord {
    token: OwnerToken,
    ends: Instant,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of records, of ended leases too.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.lock().by_key.len()
    }

    /// There are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn acquire(&self, request: &AcquireRequest) -> AcquireResponse {
        let AcquireRequest { key, token, kind, expire, block, .. } = request;
        let now = Instant::now();
        let mut records = self.records.lock();
        if let Some(record) = records.by_key.get(key)
            && now < record.ends
            && record.token != *token
            && kind.old() != Some(&record.token)
        {
            // A waiter is not told, and asks again.
            let remaining = Some(record.ends - now);
            return AcquireResponse::Busy { remaining, ours: false, listed: false };
        }
        if matches!(kind, RequestKind::Pass(old) if old.yields) {
            records.by_key.remove(key);
            return AcquireResponse::Free { listed: false };
        }
        let record = LockRecord { token: token.clone(), ends: now + *expire };
        records.by_key.insert(key.clone(), record);
        AcquireResponse::Got { numbers: records.reserve(*block), sent_at: now, others: false }
    }

    pub(crate) fn extend(&self, leases: &[Extension]) -> (Instant, Vec<Extended>) {
        let now = Instant::now();
        let mut records = self.records.lock();
        let kept = leases.iter().map(|lease| match records.by_key.get_mut(&lease.key) {
            Some(record) if record.token == lease.token && now < record.ends => {
                record.ends = record.ends.max(now + lease.expire);
                Extended::Kept
            }
            _ => Extended::Gone,
        });
        (now, kept.collect())
    }

    pub(crate) fn release(&self, key: &LockKey, token: &OwnerToken) -> ReleaseOutcome {
        let mut records = self.records.lock();
        match records.by_key.get(key) {
            Some(record) if record.token == *token => {
                let in_time = Instant::now() < record.ends;
                records.by_key.remove(key);
                if in_time { ReleaseOutcome::Released } else { ReleaseOutcome::AlreadyExpired }
            }
            _ => ReleaseOutcome::AlreadyExpired,
        }
    }
}

impl Records {
    /// Counts from wall time, so that documents that an earlier run fenced do not refuse this one.
    /// A block is reserved backwards, so that no number is ahead of the time.
    fn reserve(&mut self, block: u32) -> Numbers {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = i64::try_from(since_epoch.as_micros()).unwrap_or(0);
        let next = self.last_fence + 1;
        let high = time.max(next);
        let first = self.last_fence == 0;
        let low = if first { high } else { next.max(high - i64::from(block) + 1) };
        self.last_fence = high;
        Numbers::new(low, high)
    }
}

impl From<MemoryStore> for Store {
    fn from(store: MemoryStore) -> Self {
        Self::Memory(store)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("records", &self.len()).finish()
    }
}
