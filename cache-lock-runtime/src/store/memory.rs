//! Locks in this process's memory: the embedded default, and what tests use.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{Answer, Claim, Extended, LockStore, Released, Store};
use crate::{
    clock::Moment, error::BackendError, fence::FencingToken, key::LockKey, owner::OwnerToken,
};

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
    by_key: HashMap<String, Record>,
    /// The last fencing number, of all keys together: so nothing is kept of idle ones.
    last_fence: i64,
}

struct Record {
    owner: OwnerToken,
    ends: Moment,
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
        self.records().by_key.len()
    }

    /// There are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove(&self, key: &LockKey, owner: &OwnerToken) -> Released {
        let mut records = self.records();
        match records.by_key.get(key.as_str()) {
            Some(record) if record.owner == *owner => {
                let in_time = Moment::now() < record.ends;
                records.by_key.remove(key.as_str());
                if in_time { Released::Released } else { Released::AlreadyExpired }
            }
            _ => Released::AlreadyExpired,
        }
    }
}

impl Records {
    /// Counts from wall time, so that documents that an earlier run fenced do not refuse this one.
    fn next_fence(&mut self) -> FencingToken {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = i64::try_from(since_epoch.as_micros()).unwrap_or(0);
        self.last_fence = micros.max(self.last_fence + 1);
        FencingToken::new(self.last_fence)
    }
}

impl LockStore for MemoryStore {
    fn claim(&self, key: &LockKey, owner: OwnerToken) -> impl Claim {
        MemoryClaim { store: self.clone(), key: key.as_str().to_owned(), owner }
    }

    async fn extend(
        &self,
        key: &LockKey,
        owner: &OwnerToken,
        expire: Duration,
        _give_up: Moment,
    ) -> Result<Extended, BackendError> {
        let now = Moment::now();
        let mut records = self.records();
        match records.by_key.get_mut(key.as_str()) {
            Some(record) if record.owner == *owner && now < record.ends => {
                record.ends = record.ends.max(now.after(expire));
                Ok(Extended::Kept { sent_at: now })
            }
            _ => Ok(Extended::Gone),
        }
    }

    async fn release(
        &self,
        key: &LockKey,
        owner: &OwnerToken,
        _give_up: Moment,
    ) -> Result<Released, BackendError> {
        Ok(self.remove(key, owner))
    }

    fn release_detached(&self, key: LockKey, owner: OwnerToken, _until: Moment) {
        self.remove(&key, &owner);
    }
}

/// Its answer comes with the question, so there is never anything to take back.
struct MemoryClaim {
    store: MemoryStore,
    key: String,
    owner: OwnerToken,
}

impl Claim for MemoryClaim {
    async fn ask(&mut self, expire: Duration, _give_up: Moment) -> Result<Answer, BackendError> {
        let now = Moment::now();
        let mut records = self.store.records();
        let holder = records.by_key.get(&self.key);
        if let Some(record) =
            holder.filter(|record| now < record.ends && record.owner != self.owner)
        {
            return Ok(Answer::Busy { remaining: Some(now.until(record.ends)) });
        }
        let record = Record { owner: self.owner.clone(), ends: now.after(expire) };
        records.by_key.insert(self.key.clone(), record);
        let fence = records.next_fence();
        Ok(Answer::Granted { owner: self.owner.clone(), fence, sent_at: now })
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
