use cache_lock::{LockError, LockManager, cache_lock};

use std::{error::Error, io};

type Outcome<T = ()> = Result<T, LockError>;
type Boxed<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Debug)]
#[allow(dead_code)]
pub enum AppError {
    Io(io::Error),
    Lock(LockError),
}

impl From<io::Error> for AppError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<LockError> for AppError {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

#[cache_lock(prefix = "alias")]
async fn alias() -> Outcome {
    Ok(())
}

#[cache_lock(prefix = "boxed")]
async fn boxed(text: &str) -> Boxed<i32> {
    Ok(text.parse::<i32>()?)
}

#[cache_lock(prefix = "app")]
async fn app(fail: bool) -> Result<(), AppError> {
    if fail {
        Err(io::Error::other("no"))?;
    }
    Ok(())
}

async fn check() {
    alias().await.unwrap();
    assert_eq!(boxed("3").await.unwrap(), 3);
    assert!(boxed("x").await.unwrap_err().to_string().contains("invalid digit"));
    assert!(matches!(app(true).await, Err(AppError::Io(_))));
    app(false).await.unwrap();
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
