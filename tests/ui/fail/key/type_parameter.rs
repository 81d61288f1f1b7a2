use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", key = "{T}")]
async fn save<T: Send>(item: T) -> Result<(), LockError> {
    drop(item);
    Ok(())
}

fn main() {}
