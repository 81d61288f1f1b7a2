use std::fmt;

use uuid::Uuid;

/// What is kept of a network from which a user has logged in: a keyed hash, so the database does not
/// tell where its users have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkMark(Uuid);

impl NetworkMark {
    /// The mark with these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// Reads what `Display` writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text).ok().map(Self)
    }
}

impl fmt::Display for NetworkMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(f)
    }
}
