//! What was really sold: counted in the collections, not by the buyers' word.

use std::collections::{HashMap, HashSet};

use crate::buyers::{Answer, Crowd, Outcome};
use crate::inventory::{Inventory, InventoryError};
use crate::model::Order;

/// The state of items and orders after a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Audit {
    /// Orders.
    pub sold: i64,
    /// What the items say is left.
    pub left: i64,
    /// Orders that no piece stands behind.
    pub oversold: i64,
    /// Pieces that are gone without an order, or orders that a buyer was promised and that are
    /// not there.
    pub lost: i64,
}

impl Audit {
    /// Reads what is there now.
    ///
    /// # Errors
    /// When the inventory cannot be read.
    pub async fn of<I: Inventory>(
        inventory: &I,
        crowd: &Crowd,
        stock: u32,
        answers: &[Answer],
    ) -> Result<Self, InventoryError> {
        let mut sum = Self::default();
        let mut promised: HashMap<&str, Vec<u32>> = HashMap::new();
        for answer in answers.iter().filter(|answer| answer.outcome == Outcome::Bought) {
            promised.entry(crowd.item_for(answer.buyer)).or_default().push(answer.buyer);
        }
        for item in &crowd.items {
            let left = inventory.item(item).await?.stock;
            let orders: HashSet<String> =
                inventory.orders_of(item).await?.into_iter().map(|order| order.id).collect();
            let promised = promised.get(&**item).into_iter().flatten();
            let broken_promises = promised
                .filter(|&&buyer| !orders.contains(&Order::new(item, buyer, None).id))
                .count();
            sum.add(Self::of_item(stock.into(), left, count(orders.len()), count(broken_promises)));
        }
        Ok(sum)
    }

    fn of_item(stock: i64, left: i64, sold: i64, broken_promises: i64) -> Self {
        Self {
            sold,
            left,
            // Stock that has gone below zero is no excuse for the orders that did it.
            oversold: (sold + left.max(0) - stock).max(0),
            lost: (stock - left - sold).max(broken_promises),
        }
    }

    fn add(&mut self, item: Self) {
        self.sold += item.sold;
        self.left += item.left;
        self.oversold += item.oversold;
        self.lost += item.lost;
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Audit;

    fn oversold_and_lost(stock: i64, left: i64, sold: i64, broken_promises: i64) -> (i64, i64) {
        let audit = Audit::of_item(stock, left, sold, broken_promises);
        (audit.oversold, audit.lost)
    }

    #[test]
    fn orders_and_stock_must_agree() {
        assert_eq!(oversold_and_lost(300, 0, 300, 0), (0, 0));
        assert_eq!(oversold_and_lost(300, 100, 200, 0), (0, 0));
        // A lost update: two orders, one piece gone.
        assert_eq!(oversold_and_lost(300, 299, 2, 0), (1, 0));
        // Sold below zero.
        assert_eq!(oversold_and_lost(300, -5, 305, 0), (5, 0));
        // Gone without an order.
        assert_eq!(oversold_and_lost(300, 99, 200, 0), (0, 1));
        // Promised, but not there.
        assert_eq!(oversold_and_lost(300, 100, 200, 3), (0, 3));
    }
}
