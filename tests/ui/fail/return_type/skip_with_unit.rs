use cache_lock::cache_lock;

#[cache_lock(prefix = "orders", skip_if_locked)]
async fn tidy() {}

fn main() {}
