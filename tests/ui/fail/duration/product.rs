use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", timeout = 10 * 1000)]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

fn main() {}
