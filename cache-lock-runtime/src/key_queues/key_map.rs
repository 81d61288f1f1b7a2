//! The map of the keys that callers hold or wait for.
//!
//! Waiters, requests and guards keep the entry of their key. So a look into the map is needed only when a
//! caller comes and when a key is idle again, and events of different keys do not wait for each other.

use std::{
    collections::{HashMap, hash_map},
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    clock::Instant,
    key::LockKey,
    mutex::{Mutex, MutexGuard},
    protocol::key_queue::KeyQueue,
    timer_queue::TimerId,
};

/// The number of shards, with a lock each.
const SHARDS: usize = 16;

/// A shard with room for so many more keys than it holds is made smaller.
const ROOM: usize = 128;

/// The entry of a key.
pub(crate) struct KeyEntry {
    pub(super) key: LockKey,
    /// It is in the map no longer: the next caller gets another entry. Written under the lock.
    gone: AtomicBool,
    state: Mutex<EntryState>,
}

/// What the lock of an entry guards.
pub(super) struct EntryState {
    pub(super) queue: KeyQueue,
    /// The timer that is set for it.
    pub(super) timer: Option<TimerId>,
}

impl KeyEntry {
    fn new(key: &LockKey, random: u64) -> Self {
        let state = Mutex::new(EntryState { queue: KeyQueue::new(random), timer: None });
        Self { key: key.clone(), gone: AtomicBool::new(false), state }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, EntryState> {
        // A queue is whole between any two events, and no event runs code of a user.
        self.state.lock()
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Says that it is gone. False if it was before.
    pub(super) fn go(&self) -> bool {
        !self.gone.swap(true, Ordering::AcqRel)
    }
}

impl fmt::Debug for KeyEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyEntry").field("key", &self.key).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Shard {
    entries: HashMap<LockKey, Arc<KeyEntry>>,
    /// The last entry that is gone, for the next key: a key without contention comes and goes with each
    /// lock.
    spare: Option<Arc<KeyEntry>>,
}

impl Shard {
    fn new_entry(&mut self, key: &LockKey, random: u64) -> Arc<KeyEntry> {
        let entry = KeyEntry::new(key, random);
        if let Some(mut spare) = self.spare.take()
            // Otherwise a task or a guard still keeps the entry of its earlier key.
            && let Some(free) = Arc::get_mut(&mut spare)
        {
            *free = entry;
            return spare;
        }
        Arc::new(entry)
    }
}

/// The entries of a manager, by key.
#[derive(Default)]
pub(super) struct KeyMap {
    /// Tells the shard of a key.
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

impl KeyMap {
    pub(super) fn get(&self, key: &LockKey) -> Option<Arc<KeyEntry>> {
        self.shard(self.hasher.hash_one(key)).entries.get(key).cloned()
    }

    /// By the time that the entry is locked it may be gone.
    pub(super) fn get_or_insert(&self, key: &LockKey) -> Arc<KeyEntry> {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash);
        if let Some(entry) = shard.entries.get(key)
            && !entry.is_gone()
        {
            return Arc::clone(entry);
        }
        let entry = shard.new_entry(key, hash ^ Instant::now().as_nanos());
        shard.entries.insert(key.clone(), Arc::clone(&entry));
        entry
    }

    /// Takes out an entry that is gone.
    pub(super) fn remove(&self, gone: &Arc<KeyEntry>) {
        let mut shard = self.shard(self.hasher.hash_one(&gone.key));
        if let hash_map::Entry::Occupied(entry) = shard.entries.entry(gone.key.clone())
            // A caller that came meanwhile has inserted another one.
            && Arc::ptr_eq(entry.get(), gone)
        {
            shard.spare = Some(entry.remove());
        }
        let (room, len) = (shard.entries.capacity(), shard.entries.len());
        if room > ROOM && room / 8 > len {
            shard.entries.shrink_to(len * 2);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).entries.len()).sum()
    }

    /// All entries at some moment of the call; one that comes meanwhile may be missing.
    pub(super) fn all(&self) -> Vec<Arc<KeyEntry>> {
        let entries = |shard| lock(shard).entries.values().cloned().collect::<Vec<_>>();
        self.shards.iter().flat_map(entries).collect()
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        lock(&self.shards[hash as usize % SHARDS])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock()
}
