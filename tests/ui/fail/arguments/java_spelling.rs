use cache_lock::{LockError, cache_lock};

#[cache_lock(lockedPrefix = "orders", timeOut = 2000, expireTime = 1000)]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

fn main() {}
