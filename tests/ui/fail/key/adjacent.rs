use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", key = "{a}{b}")]
async fn save(a: u64, b: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
