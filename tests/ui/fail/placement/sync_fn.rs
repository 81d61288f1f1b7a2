use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders")]
fn save() -> Result<(), LockError> {
    Ok(())
}

fn main() {}
