//! Why a student does not get what was asked for.

use cache_lock::LockError;

use crate::provider::ProviderError;
use crate::store::StoreError;

/// Why a reservation, a move or a cancellation failed. No count has changed then, and nothing is paid
/// for good, with the exceptions that [`leaves_open`](Self::leaves_open) names.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HostelError {
    /// There is no such room.
    #[error("there is no room {0}")]
    NoSuchRoom(u32),
    /// There is no such student.
    #[error("there is no student {0:?}")]
    NoSuchStudent(String),
    /// Every bed of the room is taken.
    #[error("room {0} is full")]
    RoomFull(u32),
    /// The student has a bed.
    #[error("the student has a bed in room {room}")]
    HasBed {
        /// Its room.
        room: u32,
    },
    /// The student has no bed that could be cancelled or moved from.
    #[error("the student has no bed")]
    NoBed,
    /// The payment of this key was refunded; another attempt needs another key.
    #[error("payment {0:?} was refunded; use a new key to try again")]
    Refunded(String),
    /// The key stands for the payment of another student or another room.
    #[error("payment key {0:?} was used for something else; use a new key")]
    KeyUsed(String),
    /// The provider did not take the payment, or did not answer.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// There was no lock, or it was lost on the way.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A later holder has been at this document, so this one's write was refused and did nothing.
    #[error("the fence of {what} refused token {token}: a later holder has been there")]
    Stale {
        /// The document.
        what: String,
        /// The token that came too late.
        token: i64,
    },
}

impl HostelError {
    /// Whether it is open what became of the call. It may have taken effect in full; what it left half
    /// done the next holder or [`recover`](crate::hostel::Hostel::recover) settles.
    #[must_use]
    pub fn leaves_open(&self) -> bool {
        match self {
            Self::Lock(error) => error.is_lost(),
            Self::Store(_) | Self::Stale { .. } => true,
            _ => false,
        }
    }

    /// What happened, without whom it happened to, so that students with the same fate can be counted
    /// together.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::NoSuchRoom(_) => "room missing".to_owned(),
            Self::NoSuchStudent(_) => "student missing".to_owned(),
            Self::RoomFull(_) => "room full".to_owned(),
            Self::HasBed { .. } => "has a bed already".to_owned(),
            Self::NoBed => "has no bed".to_owned(),
            Self::Refunded(_) => "key was refunded before".to_owned(),
            Self::KeyUsed(_) => "key was used before".to_owned(),
            Self::Provider(ProviderError::Declined) => "payment declined".to_owned(),
            Self::Provider(ProviderError::TimedOut) => "payment timed out".to_owned(),
            Self::Provider(error) => error.to_string(),
            Self::Lock(LockError::Contended { .. }) => "lock busy".to_owned(),
            Self::Lock(LockError::Lost { reason, .. }) => format!("lock lost: {reason}"),
            Self::Lock(LockError::Backend { source, .. }) => format!("no lock: {source}"),
            Self::Lock(error) => error.to_string(),
            Self::Store(error) => error.to_string(),
            Self::Stale { .. } => "refused by the fence".to_owned(),
        }
    }
}
