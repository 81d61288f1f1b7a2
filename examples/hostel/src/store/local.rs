//! The collections inside this process, for a machine without a database.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Claim, Result, Store};
use crate::model::{Bed, Payment, PaymentState, Room, Student};

#[derive(Debug, Default)]
struct Collections {
    rooms: BTreeMap<u32, Room>,
    students: BTreeMap<String, Student>,
    payments: BTreeMap<String, Payment>,
}

/// The collections in this process. Operations are as atomic as the database's, no more: between a
/// read and the write that follows it others come.
#[derive(Debug, Clone, Default)]
pub struct LocalStore {
    collections: Arc<Mutex<Collections>>,
}

impl LocalStore {
    async fn request<T>(&self, operation: impl FnOnce(&mut Collections) -> T) -> Result<T> {
        // A request to a database lets others run, before it is carried out and before it is answered.
        // A call that is dropped in between has written, and does not know.
        tokio::task::yield_now().await;
        let answer =
            operation(&mut self.collections.lock().unwrap_or_else(PoisonError::into_inner));
        tokio::task::yield_now().await;
        Ok(answer)
    }
}

/// A document with a fence.
trait Fenced: Clone {
    fn fence(&self) -> i64;
    fn raise(&mut self, token: i64);
}

macro_rules! fenced {
    ($($document:ty),*) => {$(
        impl Fenced for $document {
            fn fence(&self) -> i64 {
                self.fence
            }
            fn raise(&mut self, token: i64) {
                self.fence = token;
            }
        }
    )*};
}

fenced!(Room, Student, Payment);

fn claim<T: Fenced>(document: Option<&mut T>, token: i64) -> Claim<T> {
    match document {
        None => Claim::Missing,
        Some(document) if document.fence() > token => Claim::Stale,
        Some(document) => {
            document.raise(token);
            Claim::Held(document.clone())
        }
    }
}

/// Changes the document if its fence is `token`. Returns whether it is.
fn write<T: Fenced>(document: Option<&mut T>, token: i64, change: impl FnOnce(&mut T)) -> bool {
    match document {
        Some(document) if document.fence() == token => {
            change(document);
            true
        }
        _ => false,
    }
}

impl Store for LocalStore {
    async fn add_rooms(&self, rooms: &[Room]) -> Result<()> {
        self.request(|c| {
            for room in rooms {
                c.rooms.entry(room.number).or_insert_with(|| room.clone());
            }
        })
        .await
    }

    async fn enrol(&self, students: &[Student]) -> Result<()> {
        self.request(|c| {
            for student in students {
                c.students.entry(student.id.clone()).or_insert_with(|| student.clone());
            }
        })
        .await
    }

    async fn expel(&self, student: &str) -> Result<bool> {
        self.request(|c| {
            let may_go = c.students.get(student).is_some_and(|student| student.room.is_none());
            may_go && c.students.remove(student).is_some()
        })
        .await
    }

    async fn claim_room(&self, number: u32, token: i64) -> Result<Claim<Room>> {
        self.request(|c| claim(c.rooms.get_mut(&number), token)).await
    }

    async fn claim_student(&self, id: &str, token: i64) -> Result<Claim<Student>> {
        self.request(|c| claim(c.students.get_mut(id), token)).await
    }

    async fn confirm_student(&self, id: &str, token: i64) -> Result<Claim<Student>> {
        self.request(|c| match c.students.get(id) {
            None => Claim::Missing,
            Some(student) if student.fence == token => Claim::Held(student.clone()),
            Some(_) => Claim::Stale,
        })
        .await
    }

    async fn claim_payment(&self, key: &str, token: i64) -> Result<Claim<Payment>> {
        self.request(|c| claim(c.payments.get_mut(key), token)).await
    }

    async fn add_occupant(&self, number: u32, token: i64, student: &str) -> Result<bool> {
        self.request(|c| {
            write(c.rooms.get_mut(&number), token, |room| {
                if !room.occupants.iter().any(|occupant| occupant == student) {
                    room.occupants.push(student.to_owned());
                }
            })
        })
        .await
    }

    async fn remove_occupant(&self, number: u32, token: i64, student: &str) -> Result<bool> {
        self.request(|c| {
            write(c.rooms.get_mut(&number), token, |room| {
                room.occupants.retain(|occupant| occupant != student);
            })
        })
        .await
    }

    async fn assign(&self, student: &str, token: i64, bed: Option<Bed<'_>>) -> Result<bool> {
        self.request(|c| {
            write(c.students.get_mut(student), token, |student| {
                student.room = bed.map(|bed| bed.room);
                student.payment = bed.map(|bed| bed.payment.to_owned());
            })
        })
        .await
    }

    async fn add_payment(&self, payment: &Payment) -> Result<bool> {
        self.request(|c| {
            let is_new = !c.payments.contains_key(&payment.key);
            if is_new {
                c.payments.insert(payment.key.clone(), payment.clone());
            }
            is_new
        })
        .await
    }

    async fn set_payment(
        &self,
        key: &str,
        token: i64,
        state: PaymentState,
        open: bool,
    ) -> Result<bool> {
        self.request(|c| {
            write(c.payments.get_mut(key), token, |payment| {
                payment.state = state;
                payment.open = open;
            })
        })
        .await
    }

    async fn room(&self, number: u32) -> Result<Option<Room>> {
        self.request(|c| c.rooms.get(&number).cloned()).await
    }

    async fn payment(&self, key: &str) -> Result<Option<Payment>> {
        self.request(|c| c.payments.get(key).cloned()).await
    }

    async fn open_payments(&self, student: Option<&str>) -> Result<Vec<Payment>> {
        self.request(|c| {
            let is_asked_for =
                |payment: &&Payment| student.is_none_or(|student| student == payment.student);
            c.payments
                .values()
                .filter(|payment| payment.open)
                .filter(is_asked_for)
                .cloned()
                .collect()
        })
        .await
    }

    async fn rooms(&self) -> Result<Vec<Room>> {
        self.request(|c| c.rooms.values().cloned().collect()).await
    }

    async fn students(&self) -> Result<Vec<Student>> {
        self.request(|c| c.students.values().cloned().collect()).await
    }

    async fn payments(&self) -> Result<Vec<Payment>> {
        self.request(|c| c.payments.values().cloned().collect()).await
    }
}
