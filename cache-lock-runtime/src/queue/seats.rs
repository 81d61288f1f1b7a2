//! The places of all keys that callers hold or wait for.
//!
//! Waiters, questions and leases keep the seat of their key. So the map is looked into when a caller comes
//! and when a place is idle again, and events of different keys do not wait for each other.

use std::{
    collections::{HashMap, hash_map},
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::place::Place;
use crate::{agenda::Slot, clock::Moment, key::LockKey};

/// The map is in so many parts with a lock each.
const PARTS: usize = 16;

/// A part with room for so many more keys than it holds is made smaller.
const ROOM: usize = 128;

/// Where the place of a key is.
pub(crate) struct Seat {
    pub(super) key: LockKey,
    /// It is in the map no longer: the next caller gets another seat. Written under the lock.
    gone: AtomicBool,
    seated: Mutex<Seated>,
}

/// What the lock of a seat guards.
pub(super) struct Seated {
    pub(super) place: Place,
    /// The alarm that is set for it.
    pub(super) alarm: Option<Slot>,
}

impl Seat {
    fn new(key: &LockKey, random: u64) -> Self {
        let seated = Mutex::new(Seated { place: Place::new(random), alarm: None });
        Self { key: key.clone(), gone: AtomicBool::new(false), seated }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Seated> {
        // A place is whole between any two events, and no event runs code of a user.
        self.seated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Says that it is gone. False if it was before.
    pub(super) fn go(&self) -> bool {
        !self.gone.swap(true, Ordering::AcqRel)
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("key", &self.key).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Part {
    seats: HashMap<LockKey, Arc<Seat>>,
    /// The last seat that is gone, for the next key: a key that is not contended comes and goes with
    /// each lock.
    spare: Option<Arc<Seat>>,
}

impl Part {
    fn new_seat(&mut self, key: &LockKey, random: u64) -> Arc<Seat> {
        let seat = Seat::new(key, random);
        if let Some(mut spare) = self.spare.take()
            // Else a task or a lease still keeps the seat of the key that it was for.
            && let Some(free) = Arc::get_mut(&mut spare)
        {
            *free = seat;
            return spare;
        }
        Arc::new(seat)
    }
}

/// The seats of a manager, by key.
#[derive(Default)]
pub(super) struct Seats {
    /// Tells the part of a key.
    hasher: RandomState,
    parts: [Mutex<Part>; PARTS],
}

impl Seats {
    /// The seat of a key, which is made if there is none. By the time that it is locked it may be gone.
    pub(super) fn of(&self, key: &LockKey) -> Arc<Seat> {
        let hash = self.hasher.hash_one(key);
        let mut part = self.part(hash);
        if let Some(seat) = part.seats.get(key)
            && !seat.is_gone()
        {
            return Arc::clone(seat);
        }
        let seat = part.new_seat(key, hash ^ Moment::now().as_nanos());
        part.seats.insert(key.clone(), Arc::clone(&seat));
        seat
    }

    /// Takes a seat out that is gone.
    pub(super) fn remove(&self, seat: &Arc<Seat>) {
        let mut part = self.part(self.hasher.hash_one(&seat.key));
        if let hash_map::Entry::Occupied(entry) = part.seats.entry(seat.key.clone())
            // A caller that came meanwhile has put another one in its place.
            && Arc::ptr_eq(entry.get(), seat)
        {
            part.spare = Some(entry.remove());
        }
        let (room, len) = (part.seats.capacity(), part.seats.len());
        if room > ROOM && room / 8 > len {
            part.seats.shrink_to(len * 2);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| lock(part).seats.len()).sum()
    }

    /// All seats that there are at some moment of the call; one that comes meanwhile may be missing.
    pub(super) fn all(&self) -> Vec<Arc<Seat>> {
        let seats = |part| lock(part).seats.values().cloned().collect::<Vec<_>>();
        self.parts.iter().flat_map(seats).collect()
    }

    fn part(&self, hash: u64) -> MutexGuard<'_, Part> {
        lock(&self.parts[hash as usize % PARTS])
    }
}

fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}
