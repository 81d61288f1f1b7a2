use cache_lock::{LockError, cache_lock};

const WAIT: u64 = 2000;

#[cache_lock(prefix = "orders", timeout = WAIT)]
async fn save() -> Result<(), LockError> {
    Ok(())
}

fn main() {}
