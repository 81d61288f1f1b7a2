use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", key = "{ids}")]
async fn save(ids: &[u64]) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
