use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", with = cache_lock::LockManager::in_memory())]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

fn main() {}
