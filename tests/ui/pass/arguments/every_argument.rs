use cache_lock::{LockError, LockManager, cache_lock};

use std::time::Duration;

const WAIT: Duration = Duration::from_secs(3);
const PREFIX: &str = "constant";

#[cache_lock(
    prefix = "every",
    key = "{id}/{{literal}}",
    timeout = "250ms",
    expire = "10s",
    renew = true,
    max_hold = "1m",
    bind = lock,
    or_else = refuse,
    on_lost = "cancel",
    release = "background",
    when = id > 0,
    with = locks,
    crate = cache_lock
)]
async fn every(id: u64, locks: &LockManager) -> Result<String, String> {
    Ok(lock.map_or_else(String::new, |lock| lock.key().to_string()))
}

#[allow(clippy::needless_pass_by_value)]
fn refuse(error: LockError) -> Result<String, String> {
    Err(error.to_string())
}

#[cache_lock(prefix = PREFIX, timeout = WAIT, expire = 1_000, bind = lock, renew = false, release = "wait",)]
async fn constants() -> Result<String, LockError> {
    Ok(lock.key().to_string())
}

pub trait Timed {
    const LEASE: Duration;
    const NAME: &'static str;
}

impl Timed for u64 {
    const LEASE: Duration = Duration::from_secs(1);
    const NAME: &'static str = "u64";
}

#[cache_lock(prefix = T::NAME, key = "", expire = T::LEASE, max_hold = <T as Timed>::LEASE, bind = lock)]
async fn generic<T: Timed>(_value: T) -> Result<String, LockError> {
    Ok(lock.key().to_string())
}

#[cache_lock(prefix = "formatted", when = format!("{id}!") == "7!", bind = lock)]
async fn formatted(id: u64) -> Result<bool, LockError> {
    Ok(lock.is_some())
}

async fn check() {
    assert!(formatted(7).await.unwrap());
    let locks = LockManager::in_memory();
    assert_eq!(every(1, &locks).await.unwrap(), "every:1/{literal}");
    assert_eq!(every(0, &locks).await.unwrap(), "");
    assert_eq!(constants().await.unwrap(), "constant");
    assert_eq!(generic(1_u64).await.unwrap(), "u64");
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
