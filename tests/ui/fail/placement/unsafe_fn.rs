use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders")]
async unsafe fn save() -> Result<(), LockError> {
    Ok(())
}

fn main() {}
