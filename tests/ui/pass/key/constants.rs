use cache_lock::{LockError, LockManager, cache_lock};

const REGION: &str = "eu";

#[cache_lock(prefix = "orders", key = "{shard}-{N}:{REGION}", bind = lock)]
async fn of_the_function<const N: usize>(shard: u8) -> Result<String, LockError> {
    Ok(lock.key().to_string())
}

#[cache_lock(prefix = "orders", key = "{TABLE}:{ONLINE}:{id}", bind = lock)]
async fn of_other_types<const TABLE: char, const ONLINE: bool>(
    id: u64,
) -> Result<String, LockError> {
    Ok(lock.key().to_string())
}

struct Shard<const N: usize>;

impl<const N: usize> Shard<N> {
    // The attribute does not see the `impl`, and need not.
    #[cache_lock(prefix = "shard", key = "{N}:{M}:{id}", bind = lock)]
    async fn of_the_impl<const M: u8>(&self, id: u64) -> Result<String, LockError> {
        Ok(lock.key().to_string())
    }
}

#[async_trait::async_trait]
trait Store {
    async fn save(&self) -> Result<String, LockError>;
}

#[async_trait::async_trait]
impl<const N: usize> Store for Shard<N> {
    #[cache_lock(prefix = "store", key = "{N}", bind = lock)]
    async fn save(&self) -> Result<String, LockError> {
        Ok(lock.key().to_string())
    }
}

async fn check() {
    assert_eq!(of_the_function::<2>(1).await.unwrap(), "orders:1-2:eu");
    assert_eq!(of_the_function::<3>(1).await.unwrap(), "orders:1-3:eu");
    assert_eq!(of_other_types::<'a', true>(7).await.unwrap(), "orders:a:true:7");
    assert_eq!(Shard::<4>.of_the_impl::<5>(6).await.unwrap(), "shard:4:5:6");
    assert_eq!(Shard::<7>.save().await.unwrap(), "store:7");
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
