use cache_lock::{LockError, LockManager, cache_lock};

use async_trait::async_trait;

pub struct Path<T>(pub T);

#[async_trait]
pub trait Store: Sync {
    fn name(&self) -> String;

    async fn put(&self, path: Path<u64>, key: &str, times: u32) -> Result<String, LockError>;

    async fn sum(&self, pair: (u64, String), _: u8) -> Result<u64, LockError>;

    #[cache_lock(prefix = "default", key = "{amount}")]
    async fn default_body(&self, mut amount: u64) -> Result<u64, LockError> {
        amount += 1;
        Ok(amount)
    }

    async fn finish(self: Box<Self>) -> Result<String, LockError>;
}

pub struct Memory {
    table: String,
}

#[async_trait]
impl Store for Memory {
    fn name(&self) -> String {
        self.table.clone()
    }

    #[cache_lock(prefix = "row", key = "{self.table}:{id}:{key}", bind = lock, when = self.table != "x")]
    async fn put(
        &self,
        Path(id): Path<u64>,
        key: &str,
        mut times: u32,
    ) -> Result<String, LockError> {
        times += 1;
        if times == 0 {
            return Ok(String::new());
        }
        let locked = lock.map(|lock| lock.key().to_string()).unwrap_or_default();
        Ok(format!("{locked} {} {id}", self.name()))
    }

    #[cache_lock(prefix = "sum", key = "{a}")]
    async fn sum(&self, (a, _): (u64, String), _: u8) -> Result<u64, LockError> {
        Ok(a)
    }

    #[cache_lock(prefix = "finish", key = "{self.table}")]
    async fn finish(self: Box<Self>) -> Result<String, LockError> {
        Ok(self.table)
    }
}

#[async_trait(?Send)]
pub trait Unit {
    async fn nothing(&self, value: u64);
}

#[async_trait(?Send)]
impl Unit for Memory {
    #[cache_lock(prefix = "unit", key = "{value}", or_else = ignore)]
    async fn nothing(&self, value: u64) {
        assert!(!self.table.is_empty());
    }
}

fn ignore(error: LockError) {
    drop(error);
}

async fn check() {
    let store: Box<dyn Store> = Box::new(Memory { table: "t".to_owned() });
    assert_eq!(store.put(Path(1), "k", 1).await.unwrap(), "row:t:1:k t 1");
    assert_eq!(store.sum((2, String::new()), 0).await.unwrap(), 2);
    assert_eq!(store.default_body(3).await.unwrap(), 4);
    assert_eq!(store.finish().await.unwrap(), "t");
    Memory { table: "t".to_owned() }.nothing(1).await;
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
