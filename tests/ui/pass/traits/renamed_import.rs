use cache_lock::{LockError, LockManager, cache_lock as exclusively};

#[exclusively(prefix = "renamed", bind = lock)]
async fn renamed() -> Result<String, LockError> {
    Ok(lock.key().to_string())
}

#[cache_lock::cache_lock(prefix = "path")]
async fn by_path() -> Result<(), LockError> {
    Ok(())
}

async fn check() {
    assert_eq!(renamed().await.unwrap(), "renamed");
    by_path().await.unwrap();
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
