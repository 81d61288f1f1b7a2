//! Both inventories do the same, and a purchase uses them in the right order.

use std::time::Duration;

use cache_lock::LockManager;
use seckill::cli::Mode;
use seckill::inventory::{Inventory, LocalInventory};
use seckill::model::{Item, Order};
use seckill::shop::{Pause, Shop};
use tokio::sync::watch;

const ITEM: &str = "item";

#[cfg(feature = "mongodb")]
async fn mongodb() -> seckill::inventory::MongoInventory {
    use mongodb::{Client, bson::oid::ObjectId};
    use seckill::inventory::MongoInventory;
    use test_support::MongoServer;

    let client = Client::with_uri_str(MongoServer::start().uri()).await.expect("it is reachable");
    MongoInventory::new(client.database(&format!("seckill_test_{}", ObjectId::new().to_hex())))
}

async fn keeps_its_promises(inventory: impl Inventory) -> seckill::inventory::Result<()> {
    inventory.add_items(&[Item::new(ITEM.to_owned(), 3)]).await?;
    inventory.item("another").await.expect_err("there is none");
    inventory.write_stock("another", 1).await.expect_err("there is none");

    // One piece at a time, while there are any.
    assert!(inventory.take_piece(ITEM).await?);
    inventory.write_stock(ITEM, 1).await?;
    assert!(inventory.take_piece(ITEM).await?);
    assert!(!inventory.take_piece(ITEM).await?);
    assert_eq!(inventory.item(ITEM).await?.stock, 0);
    inventory.write_stock(ITEM, 3).await?;

    // A claim shuts out older holders, and nobody else.
    let claimed = inventory.claim(ITEM, 5).await?.expect("it is the first");
    assert_eq!((claimed.stock, claimed.fence), (3, 5));
    assert_eq!(inventory.claim(ITEM, 4).await?, None);
    let stale = Order::new(ITEM, 1, Some(4));
    assert!(!inventory.sell(4, 2, &stale).await?);
    assert_eq!(inventory.item(ITEM).await?, claimed, "a refused write does nothing");

    // Selling twice is selling once.
    let order = Order::new(ITEM, 2, Some(5));
    for _ in 0..2 {
        assert!(inventory.sell(5, 2, &order).await?);
        let item = inventory.item(ITEM).await?;
        assert_eq!((item.stock, item.pending), (2, Some(order.clone())));
    }

    // So is inserting the order; the first one stands.
    assert!(!inventory.has_order(&order.id).await?);
    inventory.insert_order(&order).await?;
    inventory.insert_order(&Order { token: Some(9), ..order.clone() }).await?;
    assert!(inventory.has_order(&order.id).await?);
    assert_eq!(inventory.orders_of(ITEM).await?, std::slice::from_ref(&order));
    assert_eq!(inventory.orders_of("another").await?, []);

    // Only this order is cleared, and not by an older holder.
    assert!(!inventory.clear_pending(5, &stale).await?);
    assert!(!inventory.clear_pending(4, &order).await?);
    assert_eq!(inventory.item(ITEM).await?.pending, Some(order.clone()));
    assert!(inventory.clear_pending(5, &order).await?);
    assert_eq!(inventory.item(ITEM).await?.pending, None);
    assert!(!inventory.clear_pending(5, &order).await?);

    inventory.discard().await?;
    inventory.item(ITEM).await.expect_err("all is gone");
    Ok(())
}

#[tokio::test]
async fn the_local_inventory_keeps_its_promises() {
    keeps_its_promises(LocalInventory::default()).await.expect("it cannot fail");
}

#[cfg(feature = "mongodb")]
#[tokio::test]
async fn the_mongodb_inventory_keeps_its_promises() {
    keeps_its_promises(mongodb().await).await.expect("the server answers");
}

fn shop(inventory: LocalInventory) -> Shop<LocalInventory> {
    Shop { inventory, think: Duration::ZERO, crash_after: None }
}

/// Else a holder whose lease has ended could still write between this one's read and its write.
#[tokio::test]
async fn older_holders_are_shut_out_before_the_stock_is_read() {
    let locks = LockManager::in_memory();
    let inventory = LocalInventory::default();
    inventory.add_items(&[Item::new(ITEM.to_owned(), 3)]).await.expect("it cannot fail");
    let (shop, older) = (shop(inventory.clone()), 1);

    let (asleep, mut has_read) = watch::channel(false);
    let buys = locks.scope(shop.buy(Mode::Fenced, ITEM, 1, Pause::Freeze { asleep }));
    let late_write = async {
        has_read.wait_for(|asleep| *asleep).await.expect("it buys");
        inventory.sell(older, 2, &Order::new(ITEM, 2, Some(older))).await
    };
    let accepted = tokio::select! {
        bought = buys => panic!("nobody else has bought, so it sleeps on: {bought:?}"),
        accepted = late_write => accepted.expect("it cannot fail"),
    };
    assert!(!accepted);
}

/// A buyer whose answer got lost comes again.
#[tokio::test]
async fn a_buyer_who_comes_again_has_one_order_and_one_piece() {
    let locks = LockManager::in_memory();
    let inventory = LocalInventory::default();
    inventory.add_items(&[Item::new(ITEM.to_owned(), 3)]).await.expect("it cannot fail");
    let shop = shop(inventory.clone());
    for _ in 0..2 {
        let bought = locks.scope(shop.buy(Mode::Fenced, ITEM, 1, Pause::Think)).await;
        assert_eq!(bought.expect("nobody is in the way"), seckill::shop::Purchase::Bought);
    }
    assert_eq!(inventory.item(ITEM).await.expect("it is there").stock, 2);
    assert_eq!(inventory.orders_of(ITEM).await.expect("it cannot fail").len(), 1);
}
