use cache_lock::{LockError, LockManager, cache_lock};

/// Documented.
#[cache_lock(prefix = "kept", key = "{id}")]
#[must_use = "of use"]
#[deprecated(note = "for the test")]
#[inline]
pub(crate) async fn kept(id: u64) -> Result<u64, LockError> {
    #![allow(unused_variables)]
    let unused = 3;
    Ok(id)
}

#[cfg(any())]
#[cache_lock(prefix = "gone")]
async fn gone(id: NoSuchType) -> Result<(), LockError> {}

#[cache_lock(prefix = "cfg", key = "{id}")]
async fn parameters(
    id: u64,
    #[cfg(any())] gone: NoSuchType,
    #[cfg(not(any()))] here: u64,
    #[cfg(any())] (a, _): (NoSuchType, NoSuchType),
    #[cfg(not(any()))] (b, _): (u64, u64),
    #[allow(unused_variables)] unused: u64,
    #[expect(unused_variables)] expected: u64,
) -> Result<u64, LockError> {
    Ok(id + here + b)
}

#[allow(deprecated)]
async fn check() {
    assert_eq!(kept(1).await.unwrap(), 1);
    assert_eq!(parameters(1, 2, (3, 4), 5, 6).await.unwrap(), 6);
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
