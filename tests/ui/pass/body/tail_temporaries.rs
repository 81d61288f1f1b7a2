use cache_lock::{LockError, LockManager, cache_lock};

use std::sync::Mutex;

#[cache_lock(prefix = "tail", key = "{id}")]
async fn tail_borrows_argument(id: u64, shared: Mutex<Vec<u64>>) -> Result<Vec<u64>, LockError> {
    shared.lock().unwrap().push(id);
    Ok(shared.lock().unwrap().clone())
}

#[cache_lock(prefix = "match")]
async fn tail_is_a_match(shared: Mutex<Option<u64>>) -> Result<u64, LockError> {
    match *shared.lock().unwrap() {
        Some(value) => Ok(value),
        None => Ok(0),
    }
}

async fn check() {
    assert_eq!(tail_borrows_argument(1, Mutex::new(vec![])).await.unwrap(), [1]);
    assert_eq!(tail_is_a_match(Mutex::new(Some(2))).await.unwrap(), 2);
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
