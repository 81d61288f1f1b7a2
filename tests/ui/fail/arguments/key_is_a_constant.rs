use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", key = SHARD)]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

fn main() {}
