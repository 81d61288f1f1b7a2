use cache_lock::{LockError, cache_lock};

pub struct Path<T>(pub T);

#[cache_lock(prefix = "orders", key = "{id}")]
async fn save(id: Path<u64>) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
