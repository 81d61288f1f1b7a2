use cache_lock::{LockError, cache_lock};

pub fn closures() {
    let _ = #[cache_lock(prefix = "orders")]
    async || Ok::<(), LockError>(());
}

fn main() {}
