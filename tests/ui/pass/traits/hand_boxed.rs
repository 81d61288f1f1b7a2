use cache_lock::{LockError, LockManager, cache_lock};

use std::{future::Future, pin::Pin};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[cache_lock(prefix = "recursive", key = "{depth}", bind = lock)]
fn recursive(depth: u32) -> Pin<Box<dyn Future<Output = Result<String, LockError>> + Send>> {
    Box::pin(async move {
        let inner = if depth > 0 { recursive(depth - 1).await? } else { String::new() };
        Ok(format!("{} {inner}", lock.key()))
    })
}

fn alias(depth: u32) -> BoxFuture<'static, Result<String, LockError>> {
    recursive(depth)
}

// Of an async block, which the body becomes, clippy asks whether a future is meant as its value.
#[allow(clippy::async_yields_async)]
#[cache_lock(prefix = "deferred", or_else = never)]
async fn deferred() -> BoxFuture<'static, u8> {
    Box::pin(async move { 1 })
}

fn never(_: LockError) -> BoxFuture<'static, u8> {
    Box::pin(std::future::pending())
}

async fn check() {
    assert_eq!(deferred().await.await, 1);
    assert_eq!(alias(1).await.unwrap(), "recursive:1 recursive:0 ");
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
