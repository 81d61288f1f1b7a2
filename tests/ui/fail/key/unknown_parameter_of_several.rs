use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", key = "{zzz}")]
async fn save(id: u64, user: &str) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
