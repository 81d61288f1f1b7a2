use cache_lock::{LockError, LockManager};

#[derive(Debug)]
pub struct Failed;

impl From<LockError> for Failed {
    fn from(_: LockError) -> Self {
        Failed
    }
}

#[no_implicit_prelude]
mod bare {
    use ::cache_lock::{LockManager, cache_lock};

    use super::Failed;

    #[cache_lock(prefix = "bare", key = "{id}", timeout = "1s", with = locks, bind = lock, when = id > 0)]
    pub(crate) async fn bare(id: u64, locks: &LockManager) -> ::core::result::Result<bool, Failed> {
        ::core::result::Result::Ok(lock.is_some())
    }

    #[cache_lock(prefix = "bare", skip_if_locked)]
    pub(crate) async fn skips() -> ::core::result::Result<::core::option::Option<u8>, Failed> {
        ::core::result::Result::Ok(::core::option::Option::Some(1))
    }
}

async fn check() {
    let locks = LockManager::in_memory();
    match bare::bare(1, &locks).await {
        Ok(locked) => assert!(locked),
        Err(Failed) => panic!("failed"),
    }
    assert!(matches!(bare::skips().await, Ok(Some(1))));
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
