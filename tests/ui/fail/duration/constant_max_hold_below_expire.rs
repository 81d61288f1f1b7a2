use cache_lock::{LockError, cache_lock};

use std::time::Duration;

const HOLD: Duration = Duration::from_secs(5);

#[cache_lock(prefix = "orders", expire = "10s", max_hold = HOLD)]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

fn main() {}
