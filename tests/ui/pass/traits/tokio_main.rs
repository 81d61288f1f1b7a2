use cache_lock::{LockError, LockManager, cache_lock};

#[cache_lock(prefix = "main", with = LockManager::in_memory(), bind = lock)]
#[tokio::main(flavor = "current_thread")]
async fn above_main() -> Result<String, LockError> {
    Ok(lock.key().to_string())
}

pub fn main() {
    assert_eq!(above_main().unwrap(), "main");
}
