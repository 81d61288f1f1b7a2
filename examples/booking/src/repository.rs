//! What is kept, and the few operations on it: in MongoDB, or inside of this process.

mod local;
mod mongo;

use std::fmt;

use async_trait::async_trait;
use time::OffsetDateTime;

pub use self::local::LocalRepository;
pub use self::mongo::MongoRepository;
use crate::domain::{Booking, Day, Email, NetworkMark, Slot, SlotId, User, UserId};

/// Why the repository did not do as it was told.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryError {
    /// MongoDB failed, or was not found. A write may have happened.
    #[error("MongoDB: {}", example_support::reason(.0))]
    Mongo(#[from] mongodb::error::Error),
    /// MongoDB did not answer within 5 s. A write may have happened.
    #[error("MongoDB did not answer in time")]
    Silent,
    /// A document is not as this program writes it.
    #[error("a document of `{collection}` cannot be read: {problem}")]
    Corrupt {
        /// Where it is.
        collection: &'static str,
        /// What is wrong.
        problem: String,
    },
}

/// The result of an operation.
pub type Result<T, E = RepositoryError> = std::result::Result<T, E>;

/// Which slots to list: those that start at or after `from`, of one day or of all.
#[derive(Debug, Clone, Default)]
pub struct SlotQuery {
    /// Of this day alone.
    pub day: Option<Day>,
    /// After this position (see [`Slot::position`]).
    pub after: Option<(OffsetDateTime, SlotId)>,
    /// Without so many of the first.
    pub skip: usize,
    /// So many at most.
    pub limit: usize,
}

/// Users and slots.
///
/// Each operation is atomic, and seen by all that begin after it has returned. One that is dropped,
/// or fails, may have happened.
#[async_trait]
pub trait Repository: Send + Sync + fmt::Debug {
    /// Whether it can be used now.
    async fn ping(&self) -> Result<()>;

    /// Adds a user. `false`: the address or the id is taken, and nothing was done.
    async fn insert_user(&self, user: &User) -> Result<bool>;

    /// Replaces the networks from which a user has logged in.
    async fn set_networks(&self, user: UserId, networks: &[NetworkMark]) -> Result<()>;

    /// The user with this address.
    async fn user_by_email(&self, email: &Email) -> Result<Option<User>>;

    /// The user.
    async fn user(&self, id: UserId) -> Result<Option<User>>;

    /// Adds a slot. `false`: the id is taken, and nothing was done.
    async fn insert_slot(&self, slot: &Slot) -> Result<bool>;

    /// Adds slots with new ids.
    async fn insert_slots(&self, slots: &[Slot]) -> Result<()>;

    /// The slot.
    async fn slot(&self, id: SlotId) -> Result<Option<Slot>>;

    /// Slots in the order of their [positions](Slot::position).
    async fn slots(&self, query: &SlotQuery) -> Result<Vec<Slot>>;

    /// How many slots of the slot's day stand before it.
    async fn slots_before(&self, slot: &Slot) -> Result<u64>;

    /// The slots that a user has booked and that have not ended at `now`, in the order of their
    /// positions, 200 at most.
    async fn slots_of(&self, user: UserId, now: OffsetDateTime) -> Result<Vec<Slot>>;

    /// How many slots of a day a user has booked.
    async fn count_bookings(&self, user: UserId, day: Day) -> Result<u64>;

    /// The first write of a hold: raises the slot's fence to `token`, and returns the slot as it is
    /// then. `None`: there is no such slot, or a later token has been there.
    async fn claim_slot(&self, id: SlotId, token: i64) -> Result<Option<Slot>>;

    /// Books the slot for `booking.user`, if nobody has it and no token later than `booking.token`
    /// has been there. Returns whether it did.
    async fn book_slot(&self, id: SlotId, booking: &Booking) -> Result<bool>;

    /// Takes the slot back from `user`. `false`: that user does not have it.
    async fn release_slot(&self, id: SlotId, user: UserId) -> Result<bool>;
}
