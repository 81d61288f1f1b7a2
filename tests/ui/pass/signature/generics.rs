use cache_lock::{LockError, LockKeyPart, LockManager, cache_lock};

#[cache_lock(prefix = "generics", key = "{id}:{name}")]
async fn show<T, S>(id: T, name: S, times: usize) -> Result<String, LockError>
where
    T: LockKeyPart + Copy + std::fmt::Display,
    S: LockKeyPart + AsRef<str>,
{
    Ok(format!("{id}{}", name.as_ref().repeat(times)))
}

#[cache_lock(prefix = "sized", key = "{word}")]
async fn length<const N: usize>(word: &str, letters: [char; N]) -> Result<usize, LockError> {
    Ok(word.len() + letters.len())
}

#[cache_lock(prefix = "all", key = "")]
async fn one_lock_for_all<T: Send>(values: Vec<T>) -> Result<usize, LockError> {
    Ok(values.len())
}

#[cache_lock(prefix = "error", key = "{id}")]
async fn any_error<E: From<LockError>>(id: u64) -> Result<u64, E> {
    Ok(id)
}

async fn check() {
    assert_eq!(any_error::<Box<dyn std::error::Error>>(3).await.unwrap(), 3);
    assert_eq!(show(1, "a", 2).await.unwrap(), "1aa");
    assert_eq!(show(7_u8, String::from("b"), 1).await.unwrap(), "7b");
    assert_eq!(length("ab", ['c', 'd', 'e']).await.unwrap(), 5);
    assert_eq!(one_lock_for_all(vec![(), ()]).await.unwrap(), 2);
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
