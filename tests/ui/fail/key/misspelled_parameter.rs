use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", key = "{usr}")]
async fn save(user: &str, id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
