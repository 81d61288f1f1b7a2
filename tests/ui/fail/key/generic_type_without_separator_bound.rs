use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", key = "{id}")]
async fn save<T>(id: T) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
