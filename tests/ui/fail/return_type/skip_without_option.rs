use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", skip_if_locked)]
async fn count() -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
