use cache_lock::{LockError, LockManager, cache_lock};

use tracing::instrument;

pub struct Path<T>(pub T);

#[instrument(skip(text), fields(size = text.len()), err)]
#[cache_lock(prefix = "above", key = "{id}")]
async fn above(id: u64, text: &str) -> Result<usize, LockError> {
    Ok(text.len())
}

#[cache_lock(prefix = "below", key = "{id}")]
#[instrument(skip(text), ret)]
async fn below(Path(id): Path<u64>, mut text: String) -> Result<usize, LockError> {
    text.push('!');
    Ok(text.len())
}

#[async_trait::async_trait]
pub trait Both {
    async fn both(&self, number: u64, path: Path<u64>) -> Result<u64, LockError>;
    async fn other_order(&self, number: u64) -> Result<u64, LockError>;
}

pub struct Service {
    id: u64,
}

#[async_trait::async_trait]
impl Both for Service {
    #[cache_lock(prefix = "both", key = "{self.id}:{number}:{other}")]
    #[instrument(skip_all)]
    async fn both(&self, number: u64, Path(other): Path<u64>) -> Result<u64, LockError> {
        Ok(number + other)
    }

    #[instrument(skip(self))]
    #[cache_lock(prefix = "both", key = "{self.id}:{number}")]
    async fn other_order(&self, number: u64) -> Result<u64, LockError> {
        Ok(number)
    }
}

async fn check() {
    assert_eq!(above(1, "ab").await.unwrap(), 2);
    assert_eq!(below(Path(1), String::from("ab")).await.unwrap(), 3);
    let service = Service { id: 1 };
    assert_eq!(service.both(1, Path(2)).await.unwrap(), 3);
    assert_eq!(service.other_order(4).await.unwrap(), 4);
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
