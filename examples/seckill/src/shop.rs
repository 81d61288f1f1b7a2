//! How a purchase is made: the same sale under four kinds of protection.

use std::time::Duration;

use cache_lock::{FencingToken, LockError, cache_lock};
use tokio::sync::watch;

use crate::cli::{Mode, Step};
use crate::inventory::{Inventory, InventoryError};
use crate::model::{Item, Order};

/// How a purchase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purchase {
    /// The buyer has a piece, and the order says so.
    Bought,
    /// There was none left.
    SoldOut,
}

/// Why a purchase failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PurchaseError {
    /// There was no lock, or it was lost on the way.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The database failed.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// A later holder has been at the item, so this one's write was refused and did nothing.
    #[error("the fence of {item} refused token {token}: a later holder has been there")]
    Refused {
        /// The item's `_id`.
        item: String,
        /// The token that came too late.
        token: i64,
    },
}

impl PurchaseError {
    /// What happened, without whom it happened to and how long it took, so that buyers with the
    /// same fate can be counted together.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Lock(LockError::Contended { .. }) => {
                "no lock: others held it until the timeout".to_owned()
            }
            Self::Lock(LockError::Backend { source, .. }) => format!("no lock: {source}"),
            Self::Lock(LockError::Lost { reason, .. }) => format!("the lock was lost: {reason}"),
            Self::Lock(error) => error.to_string(),
            Self::Inventory(error) => error.reason(),
            Self::Refused { .. } => {
                "the fence refused the write: a later holder has been there".to_owned()
            }
        }
    }
}

/// What a buyer does between reading the stock and writing it.
#[derive(Debug)]
pub enum Pause {
    /// What everybody does.
    Think,
    /// Falls asleep for longer than the lease, and until somebody else has bought.
    Freeze {
        /// Is set to `true` when the buyer falls asleep.
        asleep: watch::Sender<bool>,
    },
}

/// The lease of a buyer who is going to freeze ends within this.
const FREEZE: Duration = Duration::from_millis(1500);

/// A freezing buyer wakes up after this much even if nobody has bought.
const LONGEST_FREEZE: Duration = Duration::from_secs(60);

/// The inventory and how its buyers behave.
#[derive(Debug, Clone)]
pub struct Shop<I> {
    /// Items and orders.
    pub inventory: I,
    /// Time between reading the stock and writing it.
    pub think: Duration,
    /// The process dies as soon as a purchase has done this step.
    pub crash_after: Option<Step>,
}

impl<I: Inventory> Shop<I> {
    /// Buys a piece of `item_id` under the protection of `mode`.
    ///
    /// # Errors
    /// See [`PurchaseError`].
    ///
    /// # Cancel safety
    /// A purchase that is dropped may have happened, in part or in full; in fenced mode the next
    /// holder completes it.
    pub async fn buy(
        &self,
        mode: Mode,
        item_id: &str,
        buyer: u32,
        pause: Pause,
    ) -> Result<Purchase, PurchaseError> {
        match (mode, pause) {
            (Mode::Naive, pause) => self.read_then_write(item_id, buyer, pause).await,
            (Mode::Lock, Pause::Think) => buy_locked(self, item_id, buyer).await,
            (Mode::Lock, freeze) => freeze_locked(self, item_id, buyer, freeze).await,
            (Mode::Fenced, Pause::Think) => buy_fenced(self, item_id, buyer).await,
            (Mode::Fenced, freeze) => freeze_fenced(self, item_id, buyer, freeze).await,
            (Mode::Atomic, _) => self.update_if_available(item_id, buyer).await,
        }
    }

    /// Safe under exclusion, and only for as long as the exclusion lasts.
    async fn read_then_write(
        &self,
        item_id: &str,
        buyer: u32,
        pause: Pause,
    ) -> Result<Purchase, PurchaseError> {
        let item = self.inventory.item(item_id).await?;
        if item.stock < 1 {
            return Ok(Purchase::SoldOut);
        }
        self.spend(pause, &item).await?;
        self.inventory.write_stock(item_id, item.stock - 1).await?;
        self.reached(Step::ItemUpdate);
        self.inventory.insert_order(&Order::new(item_id, buyer, None)).await?;
        self.reached(Step::OrderInsert);
        Ok(Purchase::Bought)
    }

    /// Safe whatever happens to the lock: a holder that is late writes nothing, and what a
    /// holder leaves half done is completed by the next.
    async fn sell_under_fence(
        &self,
        item_id: &str,
        buyer: u32,
        token: FencingToken,
        pause: Pause,
    ) -> Result<Purchase, PurchaseError> {
        let token = token.as_i64();
        let item = self.claim_and_settle(item_id, token).await?;
        let order = Order::new(item_id, buyer, Some(token));
        // This buyer may be here again, after an error that left the outcome open.
        if self.inventory.has_order(&order.id).await? {
            return Ok(Purchase::Bought);
        }
        if item.stock < 1 {
            return Ok(Purchase::SoldOut);
        }
        self.spend(pause, &item).await?;
        if !self.inventory.sell(token, item.stock - 1, &order).await? {
            return Err(PurchaseError::Refused { item: item.id, token });
        }
        self.reached(Step::ItemUpdate);
        self.complete(token, &order).await?;
        Ok(Purchase::Bought)
    }

    /// The first write of a hold: from here on no older holder can write. Without it, an older
    /// one could still write between this holder's read and its own write.
    async fn claim_and_settle(&self, item_id: &str, token: i64) -> Result<Item, PurchaseError> {
        let claimed = self.inventory.claim(item_id, token).await?;
        self.reached(Step::Claim);
        let Some(item) = claimed else {
            return Err(PurchaseError::Refused { item: item_id.to_owned(), token });
        };
        if let Some(order) = &item.pending {
            self.complete(token, order).await?;
        }
        Ok(item)
    }

    /// Both steps may be done twice, by whoever gets there: the order's `_id` is unique, and
    /// only this order is cleared. It is cleared when it is known to be in `orders`, not before.
    async fn complete(&self, token: i64, order: &Order) -> Result<(), InventoryError> {
        self.inventory.insert_order(order).await?;
        self.reached(Step::OrderInsert);
        // Refused or not found: a later holder has completed the order already.
        self.inventory.clear_pending(token, order).await?;
        Ok(())
    }

    async fn update_if_available(
        &self,
        item_id: &str,
        buyer: u32,
    ) -> Result<Purchase, PurchaseError> {
        tokio::time::sleep(self.think).await;
        if !self.inventory.take_piece(item_id).await? {
            return Ok(Purchase::SoldOut);
        }
        self.inventory.insert_order(&Order::new(item_id, buyer, None)).await?;
        Ok(Purchase::Bought)
    }

    async fn spend(&self, pause: Pause, read: &Item) -> Result<(), InventoryError> {
        let Pause::Freeze { asleep } = pause else {
            tokio::time::sleep(self.think).await;
            return Ok(());
        };
        asleep.send_replace(true);
        tokio::time::sleep(FREEZE).await;
        // Only a write after somebody else's is stale; on a slow machine that may take a while.
        let others_bought = async {
            while self.inventory.item(&read.id).await?.stock == read.stock {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Ok(())
        };
        tokio::time::timeout(LONGEST_FREEZE, others_bought).await.unwrap_or(Ok(()))
    }

    fn reached(&self, step: Step) {
        if self.crash_after == Some(step) {
            // No destructor runs and nothing is flushed, as with kill -9.
            std::process::abort();
        }
    }
}

#[cache_lock(prefix = "seckill", key = "{item_id}", timeout = "120s", expire = "5s")]
async fn buy_locked<I: Inventory>(
    shop: &Shop<I>,
    item_id: &str,
    buyer: u32,
) -> Result<Purchase, PurchaseError> {
    shop.read_then_write(item_id, buyer, Pause::Think).await
}

#[cache_lock(prefix = "seckill", key = "{item_id}", timeout = "120s", expire = "5s", bind = lock)]
async fn buy_fenced<I: Inventory>(
    shop: &Shop<I>,
    item_id: &str,
    buyer: u32,
) -> Result<Purchase, PurchaseError> {
    shop.sell_under_fence(item_id, buyer, lock.token(), Pause::Think).await
}

/// A buyer whose lease ends while it is still at work, and who does not know: what a long pause
/// of the process does to any holder.
#[cache_lock(
    prefix = "seckill",
    key = "{item_id}",
    timeout = "120s",
    expire = "1s",
    renew = false,
    on_lost = "finish"
)]
async fn freeze_locked<I: Inventory>(
    shop: &Shop<I>,
    item_id: &str,
    buyer: u32,
    freeze: Pause,
) -> Result<Purchase, PurchaseError> {
    shop.read_then_write(item_id, buyer, freeze).await
}

#[cache_lock(
    prefix = "seckill",
    key = "{item_id}",
    timeout = "120s",
    expire = "1s",
    renew = false,
    on_lost = "finish",
    bind = lock
)]
async fn freeze_fenced<I: Inventory>(
    shop: &Shop<I>,
    item_id: &str,
    buyer: u32,
    freeze: Pause,
) -> Result<Purchase, PurchaseError> {
    shop.sell_under_fence(item_id, buyer, lock.token(), freeze).await
}

/// Completes what the last holder may have left half done, before anybody counts.
///
/// # Errors
/// See [`PurchaseError`].
#[cache_lock(prefix = "seckill", key = "{item_id}", timeout = "120s", expire = "5s", bind = lock)]
pub async fn settle<I: Inventory>(shop: &Shop<I>, item_id: &str) -> Result<(), PurchaseError> {
    shop.claim_and_settle(item_id, lock.token().as_i64()).await.map(drop)
}
