use cache_lock::{LockError, cache_lock};

const NOTHING: &str = "";

#[cache_lock(prefix = NOTHING)]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

fn main() {}
