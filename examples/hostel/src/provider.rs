//! The payment provider: another service, with books of its own.
//!
//! It has what a hotel's card terminal has: an amount is *authorised* (held on the card), then
//! *captured* (paid), or *refunded* (let go, or paid back). Each payment has an idempotency key, so a
//! call whose answer was lost can be made again.

use std::future::Future;

use serde::{Deserialize, Serialize};

mod local;
mod mongo;
mod moody;

pub use local::LocalProvider;
pub use mongo::MongoProvider;
pub use moody::{Mood, MoodyProvider};

/// Why the provider did not do, or may not have done, what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The bank said no: nothing was taken, nor ever will be under this key.
    #[error("the payment was declined")]
    Declined,
    /// No answer. It may have been done all the same.
    #[error("the payment provider did not answer in time")]
    TimedOut,
    /// The payment was refunded, or never authorised, so it cannot be authorised or captured.
    #[error("the payment provider has closed this payment")]
    Closed,
    /// The provider's books cannot be read or written.
    #[error("the payment provider failed: {}", example_support::reason(.0))]
    Books(#[from] mongodb::error::Error),
}

/// Shorthand for the outcome of a call.
pub type Result<T> = std::result::Result<T, ProviderError>;

/// A line in the provider's books.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The idempotency key.
    #[serde(rename = "_id")]
    pub key: String,
    /// What was asked for, in cents; nothing if the payment was refunded before it was authorised.
    #[serde(default)]
    pub amount: i64,
    /// Where the money is.
    pub state: Held,
}

/// Where the money of a payment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Held {
    /// Held on the student's card.
    Authorised,
    /// With the hostel.
    Captured,
    /// With the student, for good.
    Refunded,
}

/// Takes money and gives it back.
///
/// Every call may be repeated: it does nothing if it was done before.
pub trait Provider: Clone + Send + Sync + 'static {
    /// Holds an amount on the student's card.
    fn authorise(&self, key: &str, amount: i64) -> impl Future<Output = Result<()>> + Send;

    /// Takes what was authorised.
    fn capture(&self, key: &str) -> impl Future<Output = Result<()>> + Send;

    /// Lets go of what was authorised, or pays back what was captured.
    ///
    /// A key that the provider has never seen is closed: an authorisation that arrives later, because
    /// it was slow on its way, is refused. Without that nobody could be sure that nothing is taken.
    fn refund(&self, key: &str) -> impl Future<Output = Result<()>> + Send;

    /// The books.
    fn books(&self) -> impl Future<Output = Result<Vec<Entry>>> + Send;
}
