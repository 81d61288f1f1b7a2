use std::fmt;

use cache_lock::{LockKeyPart, PartWriter};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Email, NetworkMark};

/// Names a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserId(pub Uuid);

impl UserId {
    /// A new one.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl LockKeyPart for UserId {
    fn write_part(&self, part: &mut PartWriter<'_>) {
        self.0.write_part(part);
    }
}

/// What a user may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Books slots.
    Guest,
    /// Creates slots, and books them.
    Organiser,
}

impl Role {
    /// Whether the role may create slots.
    #[must_use]
    pub fn may_create_slots(self) -> bool {
        self == Self::Organiser
    }
}

/// An account.
#[derive(Debug, Clone)]
pub struct User {
    /// Names it for good; the address may change one day.
    pub id: UserId,
    /// Names it at the login; unique.
    pub email: Email,
    /// The password's hash, in PHC format.
    pub password_hash: String,
    /// What it may do.
    pub role: Role,
    /// The networks from which its owner has registered or logged in lately, the latest last.
    pub networks: Vec<NetworkMark>,
}
