use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders")]
async fn save(args: ...) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
