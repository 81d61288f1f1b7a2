use cache_lock::{LockError, LockManager, cache_lock};

const OPTIONS: u64 = 1;
const PREFIX: u64 = 2;

#[cache_lock(prefix = "names", key = "{id}", expire = names::LEASE)]
async fn constants(id: u64) -> Result<u64, LockError> {
    const LEASE: u64 = 4;
    Ok(id + OPTIONS + PREFIX + LEASE)
}

mod names {
    use std::time::Duration;

    pub(crate) const LEASE: Duration = Duration::from_secs(1);
}

async fn check() {
    assert_eq!(constants(8).await.unwrap(), 15);
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
