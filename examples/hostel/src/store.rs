//! The document operations that the hostel is made of, over MongoDB or inside this process.
//!
//! Each is one request to the database and atomic on one document; nothing here spans two. A write is
//! refused unless the document still carries the token of the hold in which it is done.

use std::future::Future;

use crate::model::{Bed, Payment, PaymentState, Room, Student};

mod local;
mod mongo;

pub use local::LocalStore;
pub use mongo::MongoStore;
pub(crate) use mongo::{all, is_duplicate_key};

/// The database did not do what it was asked, or it is not known whether it did.
#[derive(Debug, Clone, thiserror::Error)]
#[error("MongoDB: {}", example_support::reason(.0))]
pub struct StoreError(#[from] mongodb::error::Error);

/// Shorthand for the outcome of an operation.
pub type Result<T> = std::result::Result<T, StoreError>;

/// What came of looking for a document in the name of a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim<T> {
    /// Here it is, and it carries the token.
    Held(T),
    /// Another holder has been there since.
    Stale,
    /// There is none.
    Missing,
}

/// Rooms, students and payments, wherever they are kept.
pub trait Store: Clone + Send + Sync + 'static {
    /// Inserts rooms; those whose number is there stay as they are.
    fn add_rooms(&self, rooms: &[Room]) -> impl Future<Output = Result<()>> + Send;

    /// Inserts students; those that are there stay as they are.
    fn enrol(&self, students: &[Student]) -> impl Future<Output = Result<()>> + Send;

    /// Removes a student who has no bed. Returns whether there was one to remove.
    fn expel(&self, student: &str) -> impl Future<Output = Result<bool>> + Send;

    /// Raises a room's fence to `token` and reads the room. Stale if a greater one has been there.
    fn claim_room(
        &self,
        number: u32,
        token: i64,
    ) -> impl Future<Output = Result<Claim<Room>>> + Send;

    /// Raises a student's fence to `token` and reads the student. Stale if a greater one has been there.
    fn claim_student(
        &self,
        id: &str,
        token: i64,
    ) -> impl Future<Output = Result<Claim<Student>>> + Send;

    /// Reads a student whose fence is still exactly `token`. Stale if it is not.
    fn confirm_student(
        &self,
        id: &str,
        token: i64,
    ) -> impl Future<Output = Result<Claim<Student>>> + Send;

    /// Raises a payment's fence to `token` and reads the payment. Stale if a greater one has been there.
    fn claim_payment(
        &self,
        key: &str,
        token: i64,
    ) -> impl Future<Output = Result<Claim<Payment>>> + Send;

    /// Adds an occupant, once, if the room's fence is `token`. Returns whether it is.
    fn add_occupant(
        &self,
        number: u32,
        token: i64,
        student: &str,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Removes an occupant, if the room's fence is `token`. Returns whether it is.
    fn remove_occupant(
        &self,
        number: u32,
        token: i64,
        student: &str,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Says which bed the student has, if the student's fence is `token`. Returns whether it is.
    fn assign(
        &self,
        student: &str,
        token: i64,
        bed: Option<Bed<'_>>,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Inserts a payment. Returns `false` if its key is there already.
    fn add_payment(&self, payment: &Payment) -> impl Future<Output = Result<bool>> + Send;

    /// Writes a payment's state and whether it is open, if its fence is `token`. Returns whether it is.
    fn set_payment(
        &self,
        key: &str,
        token: i64,
        state: PaymentState,
        open: bool,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Reads a room.
    fn room(&self, number: u32) -> impl Future<Output = Result<Option<Room>>> + Send;

    /// Reads a payment.
    fn payment(&self, key: &str) -> impl Future<Output = Result<Option<Payment>>> + Send;

    /// The open payments of a student, or of all.
    fn open_payments(
        &self,
        student: Option<&str>,
    ) -> impl Future<Output = Result<Vec<Payment>>> + Send;

    /// All rooms, by number.
    fn rooms(&self) -> impl Future<Output = Result<Vec<Room>>> + Send;

    /// All students.
    fn students(&self) -> impl Future<Output = Result<Vec<Student>>> + Send;

    /// All payments.
    fn payments(&self) -> impl Future<Output = Result<Vec<Payment>>> + Send;
}
