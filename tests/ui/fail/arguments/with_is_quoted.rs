use cache_lock::{LockError, LockManager, cache_lock};

#[cache_lock(prefix = "orders", with = "locks")]
async fn save(locks: LockManager) -> Result<(), LockError> {
    let _ = locks;
    Ok(())
}

fn main() {}
