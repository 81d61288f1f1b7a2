use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders")]
async fn save(item: impl Send) -> Result<(), LockError> {
    drop(item);
    Ok(())
}

fn main() {}
