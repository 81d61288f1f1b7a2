//! What the shop keeps: a document per item and a document per order.

use serde::{Deserialize, Serialize};

/// A document of the collection `items`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Unique per run and mode, so that runs can share a server.
    #[serde(rename = "_id")]
    pub id: String,
    /// Pieces that are left. Signed, because a sale without exclusion can drive it below zero.
    pub stock: i64,
    /// The highest fencing token that has written this document.
    pub fence: i64,
    /// A sale whose order is not known to be in `orders` yet. It is written in the same update
    /// as the stock, so that a crash between the two documents loses nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Order>,
}

impl Item {
    /// An item that nobody has bought from.
    #[must_use]
    pub fn new(id: String, stock: i64) -> Self {
        Self { id, stock, fence: 0, pending: None }
    }
}

/// A document of the collection `orders`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Derived from item and buyer, so that inserting an order twice is harmless.
    #[serde(rename = "_id")]
    pub id: String,
    /// The item's `_id`.
    pub item: String,
    /// The number of the buyer.
    pub buyer: u32,
    /// The token of the hold in which the piece was sold, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<i64>,
}

impl Order {
    /// The order of `buyer` for a piece of `item`.
    #[must_use]
    pub fn new(item: &str, buyer: u32, token: Option<i64>) -> Self {
        let id = format!("{}{buyer}", Self::id_prefix(item));
        Self { id, item: item.to_owned(), buyer, token }
    }

    /// What the `_id` of each order for `item` begins with, and that of no other.
    #[must_use]
    pub fn id_prefix(item: &str) -> String {
        format!("{item}-buyer-")
    }
}
