use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders")]
const async fn save() -> Result<(), LockError> {
    Ok(())
}

fn main() {}
