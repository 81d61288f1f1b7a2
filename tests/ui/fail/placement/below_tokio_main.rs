use cache_lock::{LockError, cache_lock};

#[tokio::main]
#[cache_lock(prefix = "orders")]
async fn main() -> Result<(), LockError> {
    Ok(())
}
