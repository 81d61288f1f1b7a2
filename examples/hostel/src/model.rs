//! What the hostel keeps: a document per room, per student and per payment.

use serde::{Deserialize, Serialize};

/// A document of the collection `rooms`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// The number on the door, unique.
    pub number: u32,
    /// Beds.
    pub capacity: u32,
    /// What a bed costs, in cents.
    pub price: i64,
    /// The students who have a bed here, each once. Names and not a number, so that adding and
    /// removing one may be done twice, by whoever gets there.
    pub occupants: Vec<String>,
    /// The token of the last holder of this room's lock.
    pub fence: i64,
}

impl Room {
    /// A room in which every bed is free.
    #[must_use]
    pub fn new(number: u32, capacity: u32, price: i64) -> Self {
        Self { number, capacity, price, occupants: Vec::new(), fence: 0 }
    }

    /// Whether every bed is taken.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.occupants.len() >= self.capacity as usize
    }
}

/// A document of the collection `students`: it decides where a student has a bed and which payment
/// is for it. Rooms and payments follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Student {
    /// Who it is.
    #[serde(rename = "_id")]
    pub id: String,
    /// The room, if the student has a bed.
    pub room: Option<u32>,
    /// The payment for that bed.
    pub payment: Option<String>,
    /// The token of the last holder of this student's lock.
    pub fence: i64,
}

impl Student {
    /// A student without a bed.
    #[must_use]
    pub fn new(id: String) -> Self {
        Self { id, room: None, payment: None, fence: 0 }
    }

    /// The bed, if there is one.
    #[must_use]
    pub fn bed(&self) -> Option<Bed<'_>> {
        Some(Bed { room: self.room?, payment: self.payment.as_deref()? })
    }
}

/// A bed that is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bed<'a> {
    /// Its room.
    pub room: u32,
    /// The idempotency key of its payment.
    pub payment: &'a str,
}

/// A document of the collection `payments`. It is there before the provider is asked, so nothing
/// that was taken is without a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payment {
    /// The idempotency key: the caller's, and the provider's.
    #[serde(rename = "_id")]
    pub key: String,
    /// Who pays.
    pub student: String,
    /// For a bed in this room.
    pub room: u32,
    /// What it costs, in cents.
    pub price: i64,
    /// How far it has come.
    pub state: PaymentState,
    /// Work is left, or may be: the state, the room and the provider need not agree with the student's
    /// document. Whoever holds the student's lock next settles that.
    pub open: bool,
    /// The token of the last holder of the student's lock that has been here.
    pub fence: i64,
}

/// How far a payment has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PaymentState {
    /// Written down. What the provider has done is not known.
    Requested,
    /// The provider holds the money. A bed may have been taken for it.
    Authorised,
    /// The student has the bed, and the hostel the money.
    Captured,
    /// The student has no bed for it, and pays nothing.
    Refunded,
}

impl PaymentState {
    /// As it stands in the document.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Authorised => "authorised",
            Self::Captured => "captured",
            Self::Refunded => "refunded",
        }
    }
}
