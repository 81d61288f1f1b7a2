use cache_lock::cache_lock;

#[cache_lock(prefix = "orders", key = "")]
async fn save<E>(error: E) -> Result<(), E> {
    Err(error)
}

fn main() {}
