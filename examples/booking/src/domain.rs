//! What the service is about, and what is valid: types that cannot be made from anything else.

mod day;
mod day_page;
mod email;
mod idempotency_key;
mod network_mark;
mod password;
mod slot;
mod user;

pub use self::day::Day;
pub use self::day_page::DayPage;
pub use self::email::Email;
pub use self::idempotency_key::IdempotencyKey;
pub use self::network_mark::NetworkMark;
pub use self::password::Password;
pub(crate) use self::slot::rfc3339;
pub use self::slot::{Booking, NewSlot, Slot, SlotId, Title, Window};
pub use self::user::{Role, User, UserId};

/// Why a field of a request was refused. It says what would be right, and never repeats what was
/// sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field's name in the request.
    pub field: &'static str,
    /// What is wrong with it.
    pub message: String,
}

impl FieldError {
    /// The error of one field.
    pub fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into() }
    }
}

/// Gathers the errors of a request's fields, so that all are told at once.
#[derive(Debug, Default)]
pub struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    /// The value, if it is one; else its error is kept.
    pub fn take<T>(&mut self, field: Result<T, FieldError>) -> Option<T> {
        field.map_err(|error| self.0.push(error)).ok()
    }

    /// Adds an error.
    pub fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// All of them.
    #[must_use]
    pub fn into_vec(self) -> Vec<FieldError> {
        self.0
    }
}
