use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::domain::{Role, Slot, UserId};

/// An address and a password.
#[derive(Debug, Serialize, ToSchema)]
pub struct Credentials {
    /// The account's address.
    #[schema(format = Email, max_length = 254, example = "ann@example.org")]
    pub email: String,
    /// 12 to 128 characters.
    #[schema(format = Password, min_length = 12, max_length = 128)]
    pub password: String,
}

/// An account.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Account {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    pub id: UserId,
    /// Its address, in lower case.
    pub email: String,
    /// What it may do.
    pub role: Role,
}

/// What a login gives.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokenView {
    /// To be sent as `Authorization: Bearer <token>`.
    pub token: String,
    /// Always `Bearer`.
    pub token_type: &'static str,
    /// When it ends.
    #[serde(serialize_with = "crate::domain::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: OffsetDateTime,
}

/// A slot to be created.
#[derive(Debug, Serialize, ToSchema)]
pub struct SlotRequest {
    /// 1 to 100 characters.
    #[schema(min_length = 1, max_length = 100, example = "Yoga")]
    pub title: String,
    /// When it starts; ahead of now.
    #[schema(format = DateTime, example = "2027-01-31T09:00:00Z")]
    pub starts: String,
    /// When it ends; 24 hours later at most.
    #[schema(format = DateTime, example = "2027-01-31T10:00:00Z")]
    pub ends: String,
}

/// A slot, as whoever asks may see it: who has it is told to nobody else.
#[derive(Debug, Serialize, ToSchema)]
pub struct SlotView {
    /// Its id.
    #[schema(format = Uuid)]
    pub id: String,
    /// What it is.
    pub title: String,
    /// The day on which it starts, in UTC.
    #[schema(format = Date)]
    pub day: String,
    /// When it starts.
    #[serde(serialize_with = "crate::domain::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub starts: OffsetDateTime,
    /// When it ends.
    #[serde(serialize_with = "crate::domain::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub ends: OffsetDateTime,
    /// Whether somebody has it.
    pub booked: bool,
    /// Whether whoever asks has it.
    pub mine: bool,
}

impl SlotView {
    /// The slot as `viewer` may see it.
    #[must_use]
    pub fn new(slot: &Slot, viewer: Option<UserId>) -> Self {
        Self {
            id: slot.id.to_string(),
            title: slot.title.as_str().to_owned(),
            day: slot.day.to_string(),
            starts: slot.starts,
            ends: slot.ends,
            booked: slot.booking.is_some(),
            mine: viewer.is_some_and(|viewer| slot.is_booked_by(viewer)),
        }
    }
}

/// Some slots, in the order in which they start.
#[derive(Debug, Serialize, ToSchema)]
pub struct SlotPage {
    /// The slots.
    pub slots: Vec<SlotView>,
    /// The `after` of the next page, if there is one.
    pub next: Option<String>,
}

/// The slots that somebody has.
#[derive(Debug, Serialize, ToSchema)]
pub struct Bookings {
    /// Those that have not ended, in the order in which they start; 200 at most.
    pub slots: Vec<SlotView>,
}
