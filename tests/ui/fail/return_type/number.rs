use cache_lock::cache_lock;

#[cache_lock(prefix = "orders")]
async fn count() -> u32 {
    1
}

fn main() {}
