use cache_lock::cache_lock;

#[cache_lock(prefix = "orders", or_else = |_| 0)]
async fn count() -> u32 {
    1
}

fn main() {}
