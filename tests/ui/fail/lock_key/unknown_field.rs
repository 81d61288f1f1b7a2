use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders")]
async fn save(#[lock_key(idd)] id: (u64, u64)) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
