use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", skip_if_locked = true)]
async fn save(id: u64) -> Result<Option<()>, LockError> {
    let _ = id;
    Ok(None)
}

fn main() {}
