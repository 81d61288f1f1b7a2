use cache_lock::{LockError, LockManager, cache_lock};

use std::sync::Arc;

#[derive(Clone, Default)]
pub struct Account {
    name: String,
    balance: u64,
}

impl Account {
    #[cache_lock(prefix = "account", key = "{self.name}")]
    async fn balance(&self) -> Result<u64, LockError> {
        Ok(self.balance)
    }

    #[cache_lock(prefix = "account", key = "{self.name}")]
    async fn pay_in(&mut self, amount: u64) -> Result<&mut Self, LockError> {
        self.balance += amount;
        Ok(self)
    }

    #[cache_lock(prefix = "account", key = "{self.name}")]
    async fn close(self) -> Result<u64, LockError> {
        Ok(self.balance)
    }

    #[cache_lock(prefix = "account", key = "{self.name}")]
    async fn close_empty(mut self) -> Result<u64, LockError> {
        Ok(std::mem::take(&mut self.balance))
    }

    #[cache_lock(prefix = "account", key = "{self.name}")]
    async fn shared(self: Arc<Self>) -> Result<String, LockError> {
        Ok(self.name.clone())
    }

    #[cache_lock(prefix = "account", key = "{self.name}")]
    async fn boxed(mut self: Box<Self>) -> Result<u64, LockError> {
        self.balance += 1;
        Ok(self.balance)
    }
}

async fn check() {
    let mut account = Account { name: "a".to_owned(), balance: 1 };
    account.pay_in(2).await.unwrap();
    assert_eq!(account.balance().await.unwrap(), 3);
    assert_eq!(Arc::new(account.clone()).shared().await.unwrap(), "a");
    assert_eq!(Box::new(account.clone()).boxed().await.unwrap(), 4);
    assert_eq!(account.clone().close_empty().await.unwrap(), 3);
    assert_eq!(account.close().await.unwrap(), 3);
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
