use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", key = "{price}")]
async fn save(price: f64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
