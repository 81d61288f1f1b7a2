use cache_lock::{LockError, LockManager, cache_lock};

macro_rules! locked {
    ($name:ident, $arg:ident: $type:ty, $key:literal, $lock:ident) => {
        #[cache_lock(prefix = "macro", key = $key, bind = $lock)]
        async fn $name($arg: $type, extra: u64) -> Result<String, LockError> {
            Ok(format!("{}:{}:{extra}", $lock.key(), $arg))
        }
    };
}

locked!(by_id, id: u64, "{id}", lock);
locked!(by_name, name: &str, "name/{name}", guard);

async fn check() {
    assert_eq!(by_id(1, 2).await.unwrap(), "macro:1:1:2");
    assert_eq!(by_name("a", 2).await.unwrap(), "macro:name/a:a:2");
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
