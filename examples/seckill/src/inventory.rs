//! The document operations that a sale is made of, over MongoDB or inside this process.
//!
//! Each operation is one request to the database and atomic on one document; nothing here spans
//! two. Whether the whole is safe is up to the caller, which is what this example is about.

use std::future::Future;

use crate::model::{Item, Order};

mod local;
#[cfg(feature = "mongodb")]
mod mongo;

pub use local::LocalInventory;
#[cfg(feature = "mongodb")]
pub use mongo::MongoInventory;

/// Why an operation on the inventory failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum InventoryError {
    /// The database did not do what it was asked, or it is not known whether it did.
    #[cfg(feature = "mongodb")]
    #[error("MongoDB: {0}")]
    Database(#[from] mongodb::error::Error),
    /// There is no document with this `_id`.
    #[error("there is no item {0:?}")]
    UnknownItem(String),
}

impl InventoryError {
    /// What happened, without where: the driver lists its whole view of the deployment, and labels
    /// in any order.
    pub(crate) fn reason(&self) -> String {
        match self {
            #[cfg(feature = "mongodb")]
            Self::Database(error) => format!("MongoDB: {}", example_support::reason(error)),
            Self::UnknownItem(_) => "the item is not there".to_owned(),
        }
    }
}

/// Shorthand for the outcome of an operation.
pub type Result<T> = std::result::Result<T, InventoryError>;

/// Items and orders, wherever they are kept.
pub trait Inventory: Clone + Send + Sync + 'static {
    /// Inserts the items of a sale.
    fn add_items(&self, items: &[Item]) -> impl Future<Output = Result<()>> + Send;

    /// Reads an item.
    fn item(&self, id: &str) -> impl Future<Output = Result<Item>> + Send;

    /// Overwrites the stock, whatever it is by now.
    fn write_stock(&self, id: &str, stock: i64) -> impl Future<Output = Result<()>> + Send;

    /// Takes one piece if there is one, in a single step. Returns whether there was.
    fn take_piece(&self, id: &str) -> impl Future<Output = Result<bool>> + Send;

    /// Raises the item's fence to `token` and reads the item, in a single step.
    /// `None` if a later token has been here.
    fn claim(&self, id: &str, token: i64) -> impl Future<Output = Result<Option<Item>>> + Send;

    /// Overwrites the stock and carries `order` as pending, in a single step, unless a token
    /// later than `token` has been here. Returns whether the write was accepted.
    fn sell(
        &self,
        token: i64,
        stock: i64,
        order: &Order,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Removes the pending `order` from its item, unless a token later than `token` has been
    /// here. Returns whether it was there to be removed.
    fn clear_pending(&self, token: i64, order: &Order)
    -> impl Future<Output = Result<bool>> + Send;

    /// Inserts an order; one that is there already stays as it is.
    fn insert_order(&self, order: &Order) -> impl Future<Output = Result<()>> + Send;

    /// Whether an order with this `_id` is there.
    fn has_order(&self, id: &str) -> impl Future<Output = Result<bool>> + Send;

    /// All orders for an item.
    fn orders_of(&self, item: &str) -> impl Future<Output = Result<Vec<Order>>> + Send;

    /// Removes all that this run has written.
    fn discard(&self) -> impl Future<Output = Result<()>> + Send;
}
