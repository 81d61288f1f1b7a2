use cache_lock::cache_lock;

#[cache_lock(prefix = "orders", skip_if_locked)]
async fn count() -> Option<u32> {
    Some(1)
}

fn main() {}
