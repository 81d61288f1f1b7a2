use cache_lock::{LockError, LockManager, cache_lock};

// Methods that every value has, with the names of what the attribute calls.
#[allow(dead_code, clippy::wrong_self_convention)]
trait Named: Sized {
    fn text(self, _: &str) -> u8 {
        1
    }
    fn value<T>(self, _: &T, _: &str) -> u8 {
        2
    }
    fn finish(self) -> u8 {
        3
    }
    fn is_contended(self) -> u8 {
        4
    }
    fn as_ref(self) -> u8 {
        5
    }
    fn timeout(self, _: u8) -> u8 {
        6
    }
}

impl<T> Named for T {}

#[cache_lock(prefix = "methods", key = "{id}", timeout = "1s", bind = lock, skip_if_locked, when = id > 0)]
async fn methods(id: u64) -> Result<Option<bool>, LockError> {
    assert_eq!(id.finish(), 3);
    Ok(Some(lock.is_some()))
}

async fn check() {
    assert_eq!(methods(1).await.unwrap(), Some(true));
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
