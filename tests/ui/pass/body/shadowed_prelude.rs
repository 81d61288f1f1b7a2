use cache_lock::{LockError, LockManager, cache_lock};

mod own {
    #[allow(dead_code)]
    pub(crate) enum Result {
        Ok(u8),
        Err,
    }
    pub(crate) use Result::{Err, Ok};
    pub(crate) struct Some;
    pub(crate) struct Option;
    pub(crate) struct Clone;
}

use own::{Clone, Err, Ok, Option, Result, Some};

#[cache_lock(prefix = "shadowed", key = "{id}", bind = lock, when = id > 0, timeout = "1s")]
async fn shadowed(id: u64) -> std::result::Result<bool, LockError> {
    let _ = (Ok(1), Err, Some, Option, Clone);
    let _: Option = Option;
    let _: fn(u8) -> Result = Ok;
    std::result::Result::Ok(lock.is_some())
}

async fn check() {
    assert!(shadowed(1).await.unwrap());
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
