use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders")]
async fn count() -> Result<u32, LockError> {
    Ok("one")
}

fn main() {}
