use cache_lock::{LockError, cache_lock};

pub struct Orders;

impl Orders {
    #[cache_lock(prefix = "orders")]
    pub async fn save(#[lock_key] &self) -> Result<(), LockError> {
        Ok(())
    }
}

fn main() {}
