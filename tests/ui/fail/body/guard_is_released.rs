use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", bind = lock)]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = id;
    lock.release().await?;
    Ok(())
}

fn main() {}
