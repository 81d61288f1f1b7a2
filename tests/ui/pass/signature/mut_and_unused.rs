use cache_lock::{LockError, LockManager, cache_lock};

#[cache_lock(prefix = "mut", key = "{count}")]
async fn count_up(
    mut count: u64,
    _unused: &str,
    mut words: Vec<String>,
) -> Result<usize, LockError> {
    count += 1;
    words.push(count.to_string());
    Ok(words.len())
}

#[cache_lock(prefix = "key-only", key = "{id}")]
async fn only_the_key_uses_it(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[cache_lock(prefix = "lock-key")]
async fn parameter_attribute(
    #[lock_key] id: u64,
    #[lock_key(0)] pair: &(u8, u8),
) -> Result<u8, LockError> {
    Ok(pair.1)
}

async fn check() {
    assert_eq!(count_up(1, "", vec![]).await.unwrap(), 1);
    only_the_key_uses_it(1).await.unwrap();
    assert_eq!(parameter_attribute(1, &(2, 3)).await.unwrap(), 3);
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
