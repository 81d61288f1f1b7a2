use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", or_else = busy)]
async fn count() -> u32 {
    1
}

fn busy(_: LockError) -> String {
    String::new()
}

fn main() {}
