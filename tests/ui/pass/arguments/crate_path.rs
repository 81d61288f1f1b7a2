use cache_lock::{LockError, LockManager};

mod vendored {
    pub(crate) mod locks {
        pub(crate) use ::cache_lock::*;
    }
}

use vendored::locks;

#[locks::cache_lock(prefix = "crate", key = "{id}", crate = locks, expire = "1s", bind = lock, when = true)]
async fn through_reexport(id: u64) -> Result<bool, LockError> {
    Ok(lock.is_some())
}

async fn check() {
    assert!(through_reexport(1).await.unwrap());
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
