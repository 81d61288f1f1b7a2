// Lints look at the user's tokens as if there were no attribute.
#![deny(unused_must_use)]

use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "lints")]
async fn run() -> Result<(), LockError> {
    std::fs::remove_file("x");
    Ok(())
}

fn main() {
    let _ = run;
}
