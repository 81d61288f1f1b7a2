use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", max_hold = "1m", renew = false)]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

fn main() {}
