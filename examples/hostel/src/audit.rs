//! What must be true when nobody is at work: read from the database, not taken from anybody's word.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::model::{Payment, PaymentState, Room, Student};
use crate::provider::{Entry, Held, Provider};
use crate::store::Store;

/// What is there, and what of it cannot be right.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// Rooms.
    pub rooms: u64,
    /// Beds in them.
    pub beds: u64,
    /// Beds that are taken.
    pub taken: u64,
    /// Rooms in which none is free.
    pub full_rooms: u64,
    /// The prices of the beds that are taken, in cents.
    pub price: i64,
    /// What was captured, as the payments say, in cents.
    pub captured: i64,
    /// What the provider says that it has captured, in cents.
    pub banked: i64,
    /// Payments that ended refunded.
    pub refunded: u64,
    /// A sentence for each rule that does not hold.
    pub violations: Vec<String>,
}

/// All documents, and the provider's books.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The rooms.
    pub rooms: Vec<Room>,
    /// The students.
    pub students: Vec<Student>,
    /// The payments.
    pub payments: Vec<Payment>,
    /// The books.
    pub books: Vec<Entry>,
}

impl Snapshot {
    /// Reads what is there now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn read(store: &impl Store, provider: &impl Provider) -> Result<Self, Error> {
        Ok(Self {
            rooms: store.rooms().await?,
            students: store.students().await?,
            payments: store.payments().await?,
            books: provider.books().await.map_err(crate::error::HostelError::from)?,
        })
    }

    /// Checks every rule.
    #[must_use]
    pub fn audit(&self) -> Audit {
        let mut audit = Audit::default();
        self.check_rooms(&mut audit);
        self.check_students(&mut audit);
        self.check_payments(&mut audit);
        self.check_books(&mut audit);
        let Audit { captured, banked, price, .. } = audit;
        if captured != price {
            audit.violations.push(format!(
                "{} captured, but the beds that are taken cost {}",
                money(captured),
                money(price)
            ));
        }
        if banked != captured {
            audit.violations.push(format!(
                "the provider has captured {}, the payments say {}",
                money(banked),
                money(captured)
            ));
        }
        audit
    }

    /// Occupants = students that point at the room, never above capacity.
    fn check_rooms(&self, audit: &mut Audit) {
        let mut pointing: HashMap<u32, BTreeSet<&str>> = HashMap::new();
        for student in &self.students {
            if let Some(room) = student.room {
                pointing.entry(room).or_default().insert(&student.id);
            }
        }
        for room in &self.rooms {
            let Room { number, capacity, price, ref occupants, .. } = *room;
            let taken = occupants.len() as u64;
            audit.rooms += 1;
            audit.beds += u64::from(capacity);
            audit.taken += taken;
            audit.full_rooms += u64::from(room.is_full());
            audit.price += price * i64::try_from(taken).unwrap_or(i64::MAX);
            if taken > u64::from(capacity) {
                audit
                    .violations
                    .push(format!("room {number} has {taken} occupants and {capacity} beds"));
            }
            let set: BTreeSet<&str> = occupants.iter().map(String::as_str).collect();
            if set.len() != occupants.len() {
                audit.violations.push(format!("room {number} has an occupant twice"));
            }
            let pointing = pointing.remove(&number).unwrap_or_default();
            for student in set.difference(&pointing) {
                audit.violations.push(format!(
                    "{student} is an occupant of room {number}, and does not point at it"
                ));
            }
            for student in pointing.difference(&set) {
                audit.violations.push(format!(
                    "{student} points at room {number}, and is not among its occupants"
                ));
            }
        }
        for (room, students) in pointing {
            audit.violations.push(format!(
                "{} students point at room {room}, which is missing",
                students.len()
            ));
        }
    }

    /// One bed per student, and a captured payment for it.
    fn check_students(&self, audit: &mut Audit) {
        let mut beds: BTreeMap<&str, u32> = BTreeMap::new();
        for occupant in self.rooms.iter().flat_map(|room| &room.occupants) {
            *beds.entry(occupant).or_default() += 1;
        }
        for (student, beds) in beds.into_iter().filter(|(_, beds)| *beds > 1) {
            audit.violations.push(format!("{student} has {beds} beds"));
        }
        let payments: HashMap<&str, &Payment> =
            self.payments.iter().map(|payment| (payment.key.as_str(), payment)).collect();
        for student in &self.students {
            let Student { id, room, payment, .. } = student;
            let is_paid = match (room, payment) {
                (None, None) => true,
                (Some(room), Some(key)) => payments.get(key.as_str()).is_some_and(|payment| {
                    payment.state == PaymentState::Captured
                        && payment.room == *room
                        && payment.student == *id
                }),
                _ => false,
            };
            if !is_paid {
                audit.violations.push(format!("{id} has no captured payment for its bed"));
            }
        }
    }

    /// Every payment ends captured with a bed, or refunded without one.
    fn check_payments(&self, audit: &mut Audit) {
        let prices: HashMap<u32, i64> =
            self.rooms.iter().map(|room| (room.number, room.price)).collect();
        let pointed_at: BTreeSet<&str> =
            self.students.iter().filter_map(|student| student.payment.as_deref()).collect();
        for payment in &self.payments {
            let Payment { key, room, price, state, open, .. } = payment;
            let has_bed = pointed_at.contains(key.as_str());
            match state {
                _ if *open => audit.violations.push(format!("payment {key} is not settled")),
                PaymentState::Captured if has_bed => audit.captured += price,
                PaymentState::Refunded if !has_bed => audit.refunded += 1,
                _ => audit.violations.push(format!(
                    "payment {key} is {} {} a bed",
                    state.name(),
                    if has_bed { "with" } else { "without" }
                )),
            }
            if prices.get(room).is_some_and(|of_room| of_room != price) {
                audit.violations.push(format!("payment {key} is not the price of room {room}"));
            }
        }
    }

    /// The provider's books say the same.
    fn check_books(&self, audit: &mut Audit) {
        let payments: HashMap<&str, &Payment> =
            self.payments.iter().map(|payment| (payment.key.as_str(), payment)).collect();
        for Entry { key, amount, state } in &self.books {
            match (state, payments.get(key.as_str()).map(|payment| payment.state)) {
                (Held::Captured, Some(PaymentState::Captured)) => audit.banked += amount,
                (Held::Refunded, Some(PaymentState::Refunded)) => {}
                (_, None) => {
                    audit.violations.push(format!("the provider knows {key}, the hostel does not"));
                }
                (held, Some(state)) => {
                    audit.violations.push(format!(
                        "the provider has {key} as {held:?}, the hostel as {}",
                        state.name()
                    ));
                }
            }
        }
    }
}

/// Cents as people write them.
#[must_use]
pub fn money(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A room with one bed too many and a free one, two students who sleep there, and a payment refunded.
    fn sound() -> Snapshot {
        let mut room = Room::new(1, 3, 900);
        room.occupants = vec!["ann".to_owned(), "bob".to_owned()];
        let student = |id: &str| Student {
            room: Some(1),
            payment: Some(format!("pay-{id}")),
            ..Student::new(id.to_owned())
        };
        let payment = |id: &str, state| Payment {
            key: format!("pay-{id}"),
            student: id.to_owned(),
            room: 1,
            price: 900,
            state,
            open: false,
            fence: 1,
        };
        let entry = |id: &str, state| Entry { key: format!("pay-{id}"), amount: 900, state };
        Snapshot {
            rooms: vec![room, Room::new(2, 1, 1200)],
            students: vec![student("ann"), student("bob"), Student::new("cy".to_owned())],
            payments: vec![
                payment("ann", PaymentState::Captured),
                payment("bob", PaymentState::Captured),
                payment("cy", PaymentState::Refunded),
            ],
            books: vec![
                entry("ann", Held::Captured),
                entry("bob", Held::Captured),
                entry("cy", Held::Refunded),
            ],
        }
    }

    #[test]
    fn what_is_sound_is_counted() {
        let expected = Audit {
            rooms: 2,
            beds: 4,
            taken: 2,
            full_rooms: 0,
            price: 1800,
            captured: 1800,
            banked: 1800,
            refunded: 1,
            violations: Vec::new(),
        };
        assert_eq!(sound().audit(), expected);
        assert_eq!(money(1805), "18.05");
    }

    /// Breaks something, and expects it to be named.
    #[track_caller]
    fn finds(damage: impl FnOnce(&mut Snapshot), what: &str) {
        let mut snapshot = sound();
        damage(&mut snapshot);
        let violations = snapshot.audit().violations;
        assert!(violations.iter().any(|violation| violation.contains(what)), "{violations:?}");
    }

    #[test]
    fn beds_that_do_not_add_up_are_found() {
        finds(|s| s.rooms[0].capacity = 1, "room 1 has 2 occupants and 1 beds");
        finds(|s| s.rooms[0].occupants.push("ann".to_owned()), "room 1 has an occupant twice");
        finds(|s| s.rooms[0].occupants.clear(), "ann points at room 1, and is not among");
        finds(|s| s.rooms[0].occupants.push("cy".to_owned()), "cy is an occupant of room 1, and");
        finds(|s| drop(s.rooms.remove(0)), "2 students point at room 1, which is missing");
        finds(|s| s.rooms[1].occupants.push("ann".to_owned()), "ann has 2 beds");
        finds(|s| drop(s.students.remove(0)), "ann is an occupant of room 1, and does not");
    }

    #[test]
    fn money_that_does_not_add_up_is_found() {
        finds(|s| s.payments[0].open = true, "payment pay-ann is not settled");
        finds(|s| s.payments[0].state = PaymentState::Refunded, "pay-ann is refunded with a bed");
        finds(|s| s.payments[2].state = PaymentState::Captured, "pay-cy is captured without a bed");
        finds(|s| s.payments[2].state = PaymentState::Authorised, "pay-cy is authorised without");
        finds(|s| s.payments[0].room = 2, "ann has no captured payment");
        finds(|s| s.students[0].payment = None, "ann has no captured payment");
        finds(|s| s.payments[0].price = 1, "payment pay-ann is not the price of room 1");
        finds(
            |s| s.rooms[0].price = 1000,
            "18.00 captured, but the beds that are taken cost 20.00",
        );
        finds(|s| s.books[0].amount = 1, "the provider has captured 9.01, the payments say 18.00");
        finds(|s| s.books[0].state = Held::Authorised, "the provider has pay-ann as Authorised");
        finds(|s| s.books[2].state = Held::Captured, "the provider has pay-cy as Captured");
        finds(|s| drop(s.payments.remove(2)), "the provider knows pay-cy, the hostel does not");
    }
}
