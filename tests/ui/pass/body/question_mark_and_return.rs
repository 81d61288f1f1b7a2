use cache_lock::{LockError, LockManager, cache_lock};

#[derive(Debug, PartialEq)]
pub enum Error {
    Number(std::num::ParseIntError),
    Small,
    Lock,
}

impl From<LockError> for Error {
    fn from(_: LockError) -> Self {
        Self::Lock
    }
}

impl From<std::num::ParseIntError> for Error {
    fn from(error: std::num::ParseIntError) -> Self {
        Self::Number(error)
    }
}

#[cache_lock(prefix = "question", key = "{text}")]
async fn parse(text: &str) -> Result<u32, Error> {
    let number = text.parse()?;
    if number < 3 {
        return Err(Error::Small);
    }
    for candidate in number.. {
        if candidate % 7 == 0 {
            return Ok(candidate);
        }
    }
    Ok(0)
}

#[cache_lock(prefix = "return")]
async fn only_returns() -> Result<u32, Error> {
    let value = std::future::ready(1_u16).await;
    loop {
        if value == 1 {
            return Ok(value.into());
        }
    }
}

#[cache_lock(prefix = "inferred")]
async fn inferred() -> Result<Vec<u8>, Error> {
    let bytes = "1 2".split(' ').map(str::parse).collect::<Result<_, _>>()?;
    Ok(bytes)
}

async fn check() {
    assert_eq!(parse("8").await, Ok(14));
    assert_eq!(parse("1").await, Err(Error::Small));
    assert!(matches!(parse("x").await, Err(Error::Number(_))));
    assert_eq!(only_returns().await, Ok(1));
    assert_eq!(inferred().await, Ok(vec![1, 2]));
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
