// The guard belongs to the expansion; a body that keeps it is an error at the user's name for it.

use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", bind = lock)]
async fn spawned() -> Result<(), LockError> {
    tokio::spawn(async move {
        println!("{:?}", lock.token());
    });
    Ok(())
}

#[cache_lock(prefix = "orders", bind = lock, when = ship)]
async fn spawned_on_condition(ship: bool) -> Result<(), LockError> {
    tokio::spawn(async move {
        println!("{:?}", lock.map(|lock| lock.token()));
    });
    Ok(())
}

fn main() {}
