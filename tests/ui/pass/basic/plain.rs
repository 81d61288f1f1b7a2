use cache_lock::{LockError, LockManager, cache_lock};

#[cache_lock(prefix = "orders", key = "{id}", timeout = "2s", expire = "10s")]
async fn save(id: u64) -> Result<u64, LockError> {
    Ok(id + 1)
}

#[tokio::main]
async fn main() {
    let locks = LockManager::in_memory();
    assert_eq!(locks.scope(save(1)).await.unwrap(), 2);
}
