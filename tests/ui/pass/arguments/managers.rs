use cache_lock::{LockError, LockManager, cache_lock};

use std::sync::Arc;

pub struct Shop {
    locks: LockManager,
    shared: Arc<LockManager>,
}

impl Shop {
    #[cache_lock(prefix = "with", with = self.locks, bind = lock)]
    async fn field(&self) -> Result<bool, LockError> {
        Ok(lock.is_lost())
    }

    #[cache_lock(prefix = "with", with = self.shared)]
    async fn arc(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[cache_lock(prefix = "with", with = self.manager())]
    async fn method(&self) -> Result<(), LockError> {
        Ok(())
    }

    fn manager(&self) -> &LockManager {
        &self.locks
    }
}

#[cache_lock(prefix = "with", with = locks)]
async fn owned(locks: LockManager) -> Result<(), LockError> {
    Ok(())
}

async fn check() {
    let locks = LockManager::in_memory();
    let shop = Shop { shared: Arc::new(locks.clone()), locks: locks.clone() };
    assert!(!shop.field().await.unwrap());
    shop.arc().await.unwrap();
    shop.method().await.unwrap();
    owned(locks).await.unwrap();
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
