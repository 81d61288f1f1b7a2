// Where only rustc sees that the guard is to outlive the body, the name of the variable says why not.

use cache_lock::{LockError, LockGuard, cache_lock};
use tokio::task::JoinSet;

#[cache_lock(prefix = "orders", bind = lock)]
async fn in_a_set(tasks: &mut JoinSet<()>) -> Result<(), LockError> {
    tasks.spawn(async move {
        println!("{:?}", lock.token());
    });
    Ok(())
}

#[cache_lock(prefix = "orders", bind = lock, when = ship)]
async fn on_condition(tasks: &mut JoinSet<()>, ship: bool) -> Result<(), LockError> {
    tasks.spawn(async move {
        println!("{:?}", lock.map(LockGuard::token));
    });
    Ok(())
}

#[cache_lock(prefix = "orders", bind = lock, key = "{name}")]
async fn returned(name: &str) -> Result<&LockGuard, LockError> {
    Ok(lock)
}

fn main() {}
