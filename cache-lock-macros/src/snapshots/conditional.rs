#[cache_lock(prefix = "item", key = "{item_id}", when = amount > 0, bind = lock)]
async fn restock(item_id: u64, amount: u32) -> Result<(), SaleError> {
    write(item_id, amount, lock.map(LockGuard::token)).await
}
