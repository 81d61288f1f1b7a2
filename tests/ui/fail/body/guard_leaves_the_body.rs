// What runs in a task needs the token, and not the guard.

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
        let token = lock.map(|lock| lock.token());
        println!("{token:?}");
    });
    Ok(())
}

#[cache_lock(prefix = "orders", bind = lock)]
async fn in_a_thread() -> Result<(), LockError> {
    let thread = std::thread::spawn(move || lock.is_lost());
    let _ = thread.join();
    Ok(())
}

fn main() {}
