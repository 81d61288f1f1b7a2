use cache_lock::{LockError, LockManager, cache_lock};

trait Shelf {
    const NAME: &'static str;

    fn room(&self) -> u64;

    #[cache_lock(prefix = Self::NAME, bind = lock)]
    async fn tidy(&self) -> Result<String, LockError> {
        Ok(lock.key().to_string())
    }

    async fn fill(&mut self, books: u64) -> Result<u64, LockError>;
}

pub struct Cupboard {
    room: u64,
    books: u64,
}

impl Shelf for Cupboard {
    const NAME: &'static str = "cupboard";

    fn room(&self) -> u64 {
        self.room
    }

    #[cache_lock(prefix = "cupboard", key = "{self.room}")]
    async fn fill(&mut self, books: u64) -> Result<u64, LockError> {
        self.books += books;
        Ok(self.books)
    }
}

async fn check() {
    let mut cupboard = Cupboard { room: 1, books: 2 };
    assert_eq!(cupboard.fill(3).await.unwrap(), 5);
    assert_eq!(cupboard.room(), 1);
    assert_eq!(cupboard.tidy().await.unwrap(), "cupboard");
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
