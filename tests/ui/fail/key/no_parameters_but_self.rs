use cache_lock::{LockError, cache_lock};

pub struct Orders {
    tenant: u64,
}

impl Orders {
    #[cache_lock(prefix = "orders", key = "{tenant}")]
    async fn save(&self) -> Result<(), LockError> {
        let _ = self.tenant;
        Ok(())
    }
}

fn main() {}
