use cache_lock::{LockError, cache_lock};

#[async_trait::async_trait]
pub trait Orders {
    #[cache_lock(prefix = "orders")]
    async fn save(&self) -> Result<(), LockError>;
}

fn main() {}
