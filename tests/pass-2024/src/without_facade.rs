//! The attribute's twin for those who use the runtime directly.

use cache_lock_macros::cache_lock;
use cache_lock_runtime::{LockError, LockManager};

#[cache_lock(prefix = "twin", key = "{id}", bind = lock)]
async fn twin(id: u64) -> Result<String, LockError> {
    Ok(lock.key().to_string())
}

#[tokio::test]
async fn its_paths_start_at_the_runtime() {
    let key = LockManager::in_memory().scope(twin(1)).await;
    assert_eq!(key.expect("free"), "twin:1");
}
