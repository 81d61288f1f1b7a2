use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", key = "{ids[0]}")]
async fn save(ids: &[u64]) -> Result<(), LockError> {
    let _ = ids;
    Ok(())
}

fn main() {}
