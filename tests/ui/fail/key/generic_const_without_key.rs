use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders")]
async fn save<const SHARD: u8>() -> Result<(), LockError> {
    Ok(())
}

fn main() {}
