// Lints look at the user's tokens as if there were no attribute.
#![deny(unused_mut)]

use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "lints", key = "{id}")]
async fn run(mut id: u64) -> Result<u64, LockError> {
    Ok(id)
}

fn main() {
    let _ = run;
}
