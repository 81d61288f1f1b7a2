use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", skip_if_locked, or_else = none)]
async fn count() -> u32 {
    1
}

fn none(_: LockError) -> u32 {
    0
}

fn main() {}
