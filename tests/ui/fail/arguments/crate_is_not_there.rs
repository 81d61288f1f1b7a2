use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", crate = no_such_crate)]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

fn main() {}
