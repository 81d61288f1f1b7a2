use cache_lock::{LockError, cache_lock};

const SEVEN: u32 = 7;

#[cache_lock(prefix = SEVEN)]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

fn main() {}
