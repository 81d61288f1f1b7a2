use cache_lock::{LockError, LockKeyPart, LockManager, PartWriter, cache_lock};

pub struct Isbn(u64);

impl LockKeyPart for Isbn {
    fn write_part(&self, part: &mut PartWriter<'_>) {
        self.0.write_part(part);
        part.push_str(":x");
    }
}

#[cache_lock(prefix = "book", key = "{isbn}", bind = lock)]
async fn lend(isbn: Isbn) -> Result<String, LockError> {
    Ok(lock.key().to_string())
}

async fn check() {
    assert_eq!(lend(Isbn(9)).await.unwrap(), "book:9%3Ax");
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
