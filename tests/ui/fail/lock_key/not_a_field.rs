use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders")]
async fn save(#[lock_key(name())] id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
