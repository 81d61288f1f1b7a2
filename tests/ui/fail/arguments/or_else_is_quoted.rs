use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", or_else = "busy")]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

fn main() {}
