// Lints look at the user's tokens as if there were no attribute.
#![deny(unused_variables)]

use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "lints", key = "{id}")]
async fn run(id: u64, other: u64, (a, _): (u64, u64)) -> Result<(), LockError> {
    Ok(())
}

fn main() {
    let _ = run;
}
