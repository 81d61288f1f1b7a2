// Lints look at the user's tokens as if there were no attribute.
#![deny(unused_variables)]

use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "lints", bind = lock)]
async fn run() -> Result<(), LockError> {
    Ok(())
}

fn main() {
    let _ = run;
}
