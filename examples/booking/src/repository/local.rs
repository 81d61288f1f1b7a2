use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use time::OffsetDateTime;

use super::{Repository, Result, SlotQuery};
use crate::domain::{Booking, Day, Email, NetworkMark, Slot, SlotId, User, UserId};

/// Users and slots in the memory of this process; gone with it.
#[derive(Debug, Default)]
pub struct LocalRepository(Mutex<Collections>);

#[derive(Debug, Default)]
struct Collections {
    users: HashMap<UserId, User>,
    ids: HashMap<Email, UserId>,
    slots: HashMap<SlotId, Fenced>,
    order: BTreeSet<(OffsetDateTime, SlotId)>,
}

#[derive(Debug)]
struct Fenced {
    slot: Slot,
    fence: i64,
}

impl LocalRepository {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn collections(&self) -> MutexGuard<'_, Collections> {
        // No operation leaves anything half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collections {
    /// The slot, unless a token later than `token` has been there.
    fn fenced(&mut self, id: SlotId, token: i64) -> Option<&mut Fenced> {
        let fenced = self.slots.get_mut(&id).filter(|fenced| fenced.fence <= token)?;
        fenced.fence = token;
        Some(fenced)
    }

    fn insert(&mut self, slot: &Slot) {
        self.order.insert(slot.position());
        self.slots.insert(slot.id, Fenced { slot: slot.clone(), fence: 0 });
    }

    fn in_order(&self) -> impl Iterator<Item = &Slot> {
        self.order.iter().filter_map(|(_, id)| self.slots.get(id)).map(|fenced| &fenced.slot)
    }
}

#[async_trait]
impl Repository for LocalRepository {
    async fn ping(&self) -> Result<()> {
        Ok(())
    }

    async fn insert_user(&self, user: &User) -> Result<bool> {
        let mut all = self.collections();
        if all.ids.contains_key(&user.email) || all.users.contains_key(&user.id) {
            return Ok(false);
        }
        all.ids.insert(user.email.clone(), user.id);
        all.users.insert(user.id, user.clone());
        Ok(true)
    }

    async fn user_by_email(&self, email: &Email) -> Result<Option<User>> {
        let all = self.collections();
        Ok(all.ids.get(email).and_then(|id| all.users.get(id)).cloned())
    }

    async fn user(&self, id: UserId) -> Result<Option<User>> {
        Ok(self.collections().users.get(&id).cloned())
    }

    async fn set_networks(&self, user: UserId, networks: &[NetworkMark]) -> Result<()> {
        if let Some(user) = self.collections().users.get_mut(&user) {
            user.networks = networks.to_vec();
        }
        Ok(())
    }

    async fn insert_slot(&self, slot: &Slot) -> Result<bool> {
        let mut all = self.collections();
        let free = !all.slots.contains_key(&slot.id);
        if free {
            all.insert(slot);
        }
        Ok(free)
    }

    async fn insert_slots(&self, slots: &[Slot]) -> Result<()> {
        let mut all = self.collections();
        slots.iter().for_each(|slot| all.insert(slot));
        Ok(())
    }

    async fn slot(&self, id: SlotId) -> Result<Option<Slot>> {
        Ok(self.collections().slots.get(&id).map(|fenced| fenced.slot.clone()))
    }

    async fn slots(&self, query: &SlotQuery) -> Result<Vec<Slot>> {
        let all = self.collections();
        let wanted = |slot: &&Slot| {
            query.day.is_none_or(|day| slot.day == day)
                && query.after.is_none_or(|after| slot.position() > after)
        };
        Ok(all.in_order().filter(wanted).skip(query.skip).take(query.limit).cloned().collect())
    }

    async fn slots_before(&self, slot: &Slot) -> Result<u64> {
        let all = self.collections();
        let before = |other: &&Slot| other.day == slot.day && other.position() < slot.position();
        Ok(all.in_order().filter(before).count() as u64)
    }

    async fn slots_of(&self, user: UserId, now: OffsetDateTime) -> Result<Vec<Slot>> {
        let all = self.collections();
        let his = |slot: &&Slot| slot.is_booked_by(user) && slot.ends > now;
        Ok(all.in_order().filter(his).take(200).cloned().collect())
    }

    async fn count_bookings(&self, user: UserId, day: Day) -> Result<u64> {
        let all = self.collections();
        let his = |slot: &&Slot| slot.day == day && slot.is_booked_by(user);
        Ok(all.in_order().filter(his).count() as u64)
    }

    async fn claim_slot(&self, id: SlotId, token: i64) -> Result<Option<Slot>> {
        Ok(self.collections().fenced(id, token).map(|fenced| fenced.slot.clone()))
    }

    async fn book_slot(&self, id: SlotId, booking: &Booking) -> Result<bool> {
        let mut all = self.collections();
        let free = all.slots.get(&id).is_some_and(|fenced| fenced.slot.booking.is_none());
        if !free {
            return Ok(false);
        }
        let fenced = all.fenced(id, booking.token);
        Ok(fenced.map(|fenced| fenced.slot.booking = Some(booking.clone())).is_some())
    }

    async fn release_slot(&self, id: SlotId, user: UserId) -> Result<bool> {
        let mut all = self.collections();
        let booked = all.slots.get_mut(&id).filter(|fenced| fenced.slot.is_booked_by(user));
        Ok(booked.map(|fenced| fenced.slot.booking = None).is_some())
    }
}
