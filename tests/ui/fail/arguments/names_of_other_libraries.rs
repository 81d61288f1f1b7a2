use cache_lock::{LockError, cache_lock};

#[cache_lock(resource = "orders", lease_time = "5s", guard = lock, fail_fast, on_error = busy, condition = id > 0)]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

fn main() {}
