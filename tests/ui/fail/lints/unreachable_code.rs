// Lints look at the user's tokens as if there were no attribute.
#![deny(unreachable_code)]

use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "lints")]
async fn run() -> Result<(), LockError> {
    return Ok(());
    println!("never");
    Ok(())
}

fn main() {
    let _ = run;
}
