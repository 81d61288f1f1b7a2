use cache_lock::{LockError, LockKeyPart, LockManager, cache_lock};

use std::fmt::{Debug, Display};

#[cache_lock(prefix = "argument", key = "{part}")]
async fn argument(part: impl LockKeyPart + Debug) -> Result<String, LockError> {
    Ok(format!("{part:?}"))
}

#[cache_lock(prefix = "result", key = "{id}")]
async fn result(id: u64) -> Result<impl Display, LockError> {
    if id == 0 {
        return Ok(String::from("none"));
    }
    Ok(id.to_string())
}

#[cache_lock(prefix = "nested")]
async fn nested() -> Result<Vec<impl Display>, LockError> {
    Ok(vec![1, 2])
}

async fn check() {
    assert_eq!(argument("a").await.unwrap(), "\"a\"");
    assert_eq!(result(0).await.unwrap().to_string(), "none");
    assert_eq!(result(1).await.unwrap().to_string(), "1");
    assert_eq!(nested().await.unwrap()[1].to_string(), "2");
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
