use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", or_else = |_| "busy", on_lost = "finish")]
async fn count() -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
