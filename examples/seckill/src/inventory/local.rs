//! The inventory inside this process, for a machine without a database.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Inventory, InventoryError, Result};
use crate::model::{Item, Order};

#[derive(Debug, Default)]
struct Collections {
    items: HashMap<String, Item>,
    orders: BTreeMap<String, Order>,
}

impl Collections {
    fn item(&mut self, id: &str) -> Result<&mut Item> {
        self.items.get_mut(id).ok_or_else(|| InventoryError::UnknownItem(id.to_owned()))
    }

    /// The item, if no token later than `token` has been here; its fence is raised.
    fn fenced(&mut self, id: &str, token: i64) -> Result<Option<&mut Item>> {
        let item = self.item(id)?;
        if item.fence > token {
            return Ok(None);
        }
        item.fence = token;
        Ok(Some(item))
    }
}

/// Items and orders in this process. Operations are as atomic as the database's, no more: a
/// read and the write that follows it are two steps, between which others come.
#[derive(Debug, Clone, Default)]
pub struct LocalInventory {
    collections: Arc<Mutex<Collections>>,
}

impl LocalInventory {
    async fn request<T>(&self, operation: impl FnOnce(&mut Collections) -> T) -> T {
        // A request to a database lets other buyers run; so does this one.
        tokio::task::yield_now().await;
        operation(&mut self.collections.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Inventory for LocalInventory {
    async fn add_items(&self, items: &[Item]) -> Result<()> {
        self.request(|c| c.items.extend(items.iter().map(|item| (item.id.clone(), item.clone()))))
            .await;
        Ok(())
    }

    async fn item(&self, id: &str) -> Result<Item> {
        self.request(|c| c.item(id).cloned()).await
    }

    async fn write_stock(&self, id: &str, stock: i64) -> Result<()> {
        self.request(|c| c.item(id).map(|item| item.stock = stock)).await
    }

    async fn take_piece(&self, id: &str) -> Result<bool> {
        self.request(|c| {
            let item = c.item(id)?;
            let available = item.stock >= 1;
            if available {
                item.stock -= 1;
            }
            Ok(available)
        })
        .await
    }

    async fn claim(&self, id: &str, token: i64) -> Result<Option<Item>> {
        self.request(|c| Ok(c.fenced(id, token)?.cloned())).await
    }

    async fn sell(&self, token: i64, stock: i64, order: &Order) -> Result<bool> {
        self.request(|c| {
            let Some(item) = c.fenced(&order.item, token)? else { return Ok(false) };
            item.stock = stock;
            item.pending = Some(order.clone());
            Ok(true)
        })
        .await
    }

    async fn clear_pending(&self, token: i64, order: &Order) -> Result<bool> {
        self.request(|c| {
            let Some(item) = c.fenced(&order.item, token)? else { return Ok(false) };
            Ok(item.pending.take_if(|pending| pending.id == order.id).is_some())
        })
        .await
    }

    async fn insert_order(&self, order: &Order) -> Result<()> {
        self.request(|c| {
            c.orders.entry(order.id.clone()).or_insert_with(|| order.clone());
        })
        .await;
        Ok(())
    }

    async fn has_order(&self, id: &str) -> Result<bool> {
        Ok(self.request(|c| c.orders.contains_key(id)).await)
    }

    async fn orders_of(&self, item: &str) -> Result<Vec<Order>> {
        // A look at all orders for each item would take the product of both in time.
        let first = Order::id_prefix(item);
        Ok(self
            .request(|c| {
                let from_first = c.orders.range(first.clone()..).map(|(_, order)| order);
                from_first.take_while(|order| order.id.starts_with(&first)).cloned().collect()
            })
            .await)
    }

    async fn discard(&self) -> Result<()> {
        self.request(|c| *c = Collections::default()).await;
        Ok(())
    }
}
