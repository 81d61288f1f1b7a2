use cache_lock::{LockError, cache_lock};

use std::time::Duration;

const LEASE: Duration = Duration::from_millis(5);

#[cache_lock(prefix = "orders", expire = LEASE)]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

fn main() {}
