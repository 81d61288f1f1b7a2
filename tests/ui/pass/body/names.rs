use cache_lock::{LockError, LockManager, cache_lock};

#[cache_lock(prefix = "names", key = "{key}:{type}:{guard}", timeout = "1s")]
#[allow(clippy::too_many_arguments)]
async fn arguments(
    key: u64,
    guard: u64,
    lock: u64,
    manager: u64,
    options: u64,
    result: u64,
    body: u64,
    error: u64,
    outcome: u64,
    value: u64,
    enabled: u64,
    r#type: u64,
) -> Result<u64, LockError> {
    Ok(key
        + guard
        + lock
        + manager
        + options
        + result
        + body
        + error
        + outcome
        + value
        + enabled
        + r#type)
}

#[cache_lock(prefix = "names", bind = guard, when = key > 0)]
async fn bound(key: u64) -> Result<bool, LockError> {
    let lock = guard.is_some();
    Ok(lock)
}

#[cache_lock(prefix = "names", bind = _lock)]
async fn bound_and_unused() -> Result<(), LockError> {
    Ok(())
}

#[cache_lock(prefix = "names", bind = _1)]
#[allow(clippy::just_underscores_and_digits)]
async fn bound_to_a_number() -> Result<(), LockError> {
    Ok(())
}

#[cache_lock(prefix = "names", bind = r#type)]
async fn bound_to_a_keyword() -> Result<bool, LockError> {
    Ok(r#type.is_lost())
}

async fn check() {
    bound_and_unused().await.unwrap();
    bound_to_a_number().await.unwrap();
    assert!(!bound_to_a_keyword().await.unwrap());
    assert_eq!(arguments(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12).await.unwrap(), 78);
    assert!(bound(1).await.unwrap());
    assert!(!bound(0).await.unwrap());
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
