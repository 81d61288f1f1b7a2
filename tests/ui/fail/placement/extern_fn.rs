use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders")]
async extern "C" fn save() -> Result<(), LockError> {
    Ok(())
}

fn main() {}
