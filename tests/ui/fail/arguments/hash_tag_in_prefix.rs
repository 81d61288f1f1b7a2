use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "{eu}:orders")]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

fn main() {}
