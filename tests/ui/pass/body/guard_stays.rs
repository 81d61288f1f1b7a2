use std::sync::Arc;

use cache_lock::{FencingToken, LockError, LockManager, cache_lock};
use tokio::sync::Mutex;

struct Order {
    lock: u64,
}

async fn work(token: FencingToken, order: Order) -> i64 {
    tokio::task::yield_now().await;
    token.as_i64() + i64::try_from(order.lock).unwrap()
}

// What looks as if the guard left the body, and does not.
#[cache_lock(prefix = "guard", bind = lock)]
async fn stays(shared: Arc<Mutex<u64>>) -> Result<i64, LockError> {
    let first = tokio::spawn(work(lock.token(), Order { lock: 1 }));
    let other = Arc::clone(&shared);
    let second = tokio::spawn(async move { *other.lock().await + Order { lock: 2 }.lock });
    let third = tokio::spawn(async move { format!("{}", shared.lock().await) });
    let fourth = std::thread::spawn(|| [1, 2].map(|lock| lock + 1).len());
    let lost = std::thread::scope(|scope| scope.spawn(|| lock.is_lost()).join().unwrap());
    assert!(!lost);
    assert_eq!(second.await.unwrap(), 12);
    assert_eq!(third.await.unwrap(), "10");
    assert_eq!(fourth.join().unwrap(), 2);
    Ok(first.await.unwrap() - lock.token().as_i64())
}

#[cache_lock(prefix = "guard", bind = lock)]
async fn bound_anew() -> Result<bool, LockError> {
    let lock = lock.token();
    let task = tokio::spawn(async move { lock.as_i64() > 0 });
    Ok(task.await.unwrap())
}

async fn check() {
    assert_eq!(stays(Arc::new(Mutex::new(10))).await.unwrap(), 1);
    assert!(bound_anew().await.unwrap());
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
