use cache_lock::{LockError, LockKey, LockManager, LockOptions, cache_lock};

#[derive(Debug, PartialEq)]
pub enum PayError {
    Busy(u64),
    Lock,
}

impl From<LockError> for PayError {
    fn from(_: LockError) -> Self {
        Self::Lock
    }
}

#[cache_lock(
    prefix = "pay",
    key = "{account}",
    timeout = 0,
    or_else = |error| Err(if error.is_contended() { PayError::Busy(account) } else { error.into() })
)]
async fn pay(account: u64) -> Result<u64, PayError> {
    Ok(account)
}

#[cache_lock(prefix = "name", key = "{name}", timeout = 0, on_lost = "finish", or_else = move |_| name.len())]
async fn length_or_length(name: String) -> usize {
    name.len() + 100
}

async fn check() {
    let locks = LockManager::in_memory();
    assert_eq!(locks.scope(pay(1)).await, Ok(1));
    assert_eq!(locks.scope(length_or_length(String::from("ab"))).await, 102);
    let once = LockOptions::new();
    let _pay = locks.acquire(LockKey::new("pay").part(1), &once).await.unwrap();
    let _name = locks.acquire(LockKey::new("name").part("ab"), &once).await.unwrap();
    assert_eq!(locks.scope(pay(1)).await, Err(PayError::Busy(1)));
    assert_eq!(locks.scope(length_or_length(String::from("ab"))).await, 2);
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
