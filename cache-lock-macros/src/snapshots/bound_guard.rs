#[cache_lock(prefix = "item", key = "{item_id}", bind = lock, renew = false, on_lost = "finish")]
async fn sell(item_id: u64) -> Result<(), SaleError> {
    write(item_id, lock.token()).await
}
