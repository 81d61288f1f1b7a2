//! One attribute, and two tasks that want the same room.
//!
//! `cargo run --example quickstart` uses locks in memory; with `REDIS_URL` set, a Redis server.

use std::{env, time::Duration};

use cache_lock::{LockError, LockGuard, LockManager, cache_lock};

#[cache_lock(prefix = "room", key = "{room}", timeout = "2s", expire = "10s", bind = lock)]
async fn reserve(room: u32, student: &str) -> Result<String, LockError> {
    tokio::time::sleep(Duration::from_millis(100)).await; // reads, decides, writes
    Ok(format!("{student} has room {room}, with fencing token {}", lock.token()))
}

#[tokio::main]
async fn main() -> Result<(), LockError> {
    let locks = match env::var("REDIS_URL") {
        Ok(url) => LockManager::connect(&url).await?,
        Err(_) => LockManager::in_memory(),
    };
    locks.install()?;

    let (ann, bob) = tokio::join!(reserve(42, "Ann"), reserve(42, "Bob"));
    println!("{}\n{}", ann?, bob?);
    locks.shutdown().await;
    Ok(())
}
