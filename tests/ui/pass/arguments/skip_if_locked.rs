use cache_lock::{LockError, LockManager, LockOptions, cache_lock};

#[cache_lock(prefix = "skip", skip_if_locked)]
async fn result() -> Result<Option<u64>, LockError> {
    Ok(Some(1))
}

#[cache_lock(prefix = "skip", skip_if_locked, or_else = no_server)]
async fn option() -> Option<u64> {
    Some(2)
}

#[allow(clippy::needless_pass_by_value)]
fn no_server(error: LockError) -> Option<u64> {
    panic!("{error}")
}

type Maybe<T> = Result<Option<T>, LockError>;

#[cache_lock(prefix = "skip", skip_if_locked, timeout = "10ms", when = true)]
async fn alias() -> Maybe<&'static str> {
    Ok(Some("done"))
}

async fn check() {
    let locks = LockManager::in_memory();
    assert_eq!(locks.scope(result()).await.unwrap(), Some(1));
    assert_eq!(locks.scope(option()).await, Some(2));
    assert_eq!(locks.scope(alias()).await.unwrap(), Some("done"));
    let _held = locks.acquire("skip", &LockOptions::new()).await.unwrap();
    assert_eq!(locks.scope(result()).await.unwrap(), None);
    assert_eq!(locks.scope(option()).await, None);
    assert_eq!(locks.scope(alias()).await.unwrap(), None);
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
