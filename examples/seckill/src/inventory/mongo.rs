//! The inventory in MongoDB.

use mongodb::bson::{Document, doc, to_bson};
use mongodb::error::{ErrorKind, WriteFailure};
use mongodb::options::ReturnDocument;
use mongodb::{Collection, Database};

use super::{Inventory, InventoryError, Result};
use crate::model::{Item, Order};

const DUPLICATE_KEY: i32 = 11000;

/// Items and orders in a database of this run's own.
#[derive(Debug, Clone)]
pub struct MongoInventory {
    database: Database,
    items: Collection<Item>,
    orders: Collection<Order>,
}

impl MongoInventory {
    /// The inventory in `database`, which must read from the primary and write to the majority.
    #[must_use]
    pub fn new(database: Database) -> Self {
        let items = database.collection("items");
        let orders = database.collection("orders");
        Self { database, items, orders }
    }

    /// The name of the database.
    #[must_use]
    pub fn name(&self) -> &str {
        self.database.name()
    }

    /// Returns whether the filter found its document.
    async fn update_item(&self, filter: Document, update: Document) -> Result<bool> {
        Ok(self.items.update_one(filter, update).await?.matched_count == 1)
    }
}

/// The item, unless a token later than `token` has been there.
fn fenced(id: &str, token: i64) -> Document {
    doc! { "_id": id, "fence": { "$lte": token } }
}

fn is_duplicate_key(error: &mongodb::error::Error) -> bool {
    matches!(
        error.kind.as_ref(),
        ErrorKind::Write(WriteFailure::WriteError(write)) if write.code == DUPLICATE_KEY
    )
}

impl Inventory for MongoInventory {
    async fn add_items(&self, items: &[Item]) -> Result<()> {
        self.items.insert_many(items).await?;
        Ok(())
    }

    async fn item(&self, id: &str) -> Result<Item> {
        let item = self.items.find_one(doc! { "_id": id }).await?;
        item.ok_or_else(|| InventoryError::UnknownItem(id.to_owned()))
    }

    async fn write_stock(&self, id: &str, stock: i64) -> Result<()> {
        if self.update_item(doc! { "_id": id }, doc! { "$set": { "stock": stock } }).await? {
            Ok(())
        } else {
            Err(InventoryError::UnknownItem(id.to_owned()))
        }
    }

    async fn take_piece(&self, id: &str) -> Result<bool> {
        let available = doc! { "_id": id, "stock": { "$gte": 1 } };
        self.update_item(available, doc! { "$inc": { "stock": -1 } }).await
    }

    async fn claim(&self, id: &str, token: i64) -> Result<Option<Item>> {
        let raise = doc! { "$set": { "fence": token } };
        let claimed = self.items.find_one_and_update(fenced(id, token), raise);
        Ok(claimed.return_document(ReturnDocument::After).await?)
    }

    async fn sell(&self, token: i64, stock: i64, order: &Order) -> Result<bool> {
        let pending = to_bson(order).map_err(mongodb::error::Error::from)?;
        let update = doc! { "$set": { "stock": stock, "fence": token, "pending": pending } };
        self.update_item(fenced(&order.item, token), update).await
    }

    async fn clear_pending(&self, token: i64, order: &Order) -> Result<bool> {
        let mut filter = fenced(&order.item, token);
        filter.insert("pending._id", &order.id);
        let update = doc! { "$set": { "fence": token }, "$unset": { "pending": "" } };
        self.update_item(filter, update).await
    }

    async fn insert_order(&self, order: &Order) -> Result<()> {
        match self.orders.insert_one(order).await {
            Err(error) if !is_duplicate_key(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn has_order(&self, id: &str) -> Result<bool> {
        Ok(self.orders.find_one(doc! { "_id": id }).await?.is_some())
    }

    async fn orders_of(&self, item: &str) -> Result<Vec<Order>> {
        let mut cursor = self.orders.find(doc! { "item": item }).await?;
        let mut orders = Vec::new();
        while cursor.advance().await? {
            orders.push(cursor.deserialize_current()?);
        }
        Ok(orders)
    }

    async fn discard(&self) -> Result<()> {
        self.database.drop().await?;
        Ok(())
    }
}
