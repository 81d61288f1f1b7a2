use cache_lock::{LockError, LockManager, cache_lock};

#[cache_lock(prefix = "send", key = "{id}", bind = lock, when = id > 0)]
async fn send(id: u64, text: String) -> Result<usize, LockError> {
    tokio::task::yield_now().await;
    let _ = lock;
    Ok(text.len())
}

#[cache_lock(prefix = "local", key = "{id}")]
async fn local(id: u64, text: std::rc::Rc<str>) -> Result<usize, LockError> {
    tokio::task::yield_now().await;
    Ok(text.len())
}

fn is_send<T: Send>(value: T) -> T {
    value
}

async fn check() {
    assert_eq!(is_send(send(1, String::from("ab"))).await.unwrap(), 2);
    assert_eq!(local(1, "abc".into()).await.unwrap(), 3);
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
