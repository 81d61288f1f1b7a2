use cache_lock::{LockError, LockManager, cache_lock};

#[cache_lock(prefix = "diverging", key = "{id}")]
async fn panics(id: u64) -> Result<u64, LockError> {
    panic!("no {id}")
}

#[cache_lock(prefix = "unit", or_else = ignore)]
async fn nothing() {}

fn ignore(error: LockError) {
    drop(error);
}

async fn check() {
    nothing().await;
    let failed = tokio::spawn(async { LockManager::in_memory().scope(panics(1)).await });
    assert!(failed.await.unwrap_err().is_panic());
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
