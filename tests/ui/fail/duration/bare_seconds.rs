use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", timeout = 5, expire = 10, max_hold = 60)]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

fn main() {}
