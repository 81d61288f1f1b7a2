use cache_lock::{LockError, cache_lock};

pub trait Orders {
    #[cache_lock(prefix = "orders")]
    async fn save(&self) -> Result<(), LockError>;
}

fn main() {}
