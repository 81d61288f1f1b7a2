use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", key = "{ids::FIRST}")]
async fn save(id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
