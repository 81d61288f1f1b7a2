//! The arguments of the attribute.

use super::*;

#[cache_lock(prefix = "when", when = { asked.fetch_add(1, Ordering::Relaxed); locked }, bind = lock)]
async fn when(locked: bool, asked: &AtomicUsize) -> Result<bool, LockError> {
    let lock: Option<&LockGuard> = lock;
    Ok(lock.is_some())
}

#[tokio::test]
async fn when_decides_once_whether_there_is_lock() {
    let (locks, asked) = (LockManager::in_memory(), AtomicUsize::new(0));
    assert!(locks.scope(when(true, &asked)).await.expect("free"));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let _held = locks.acquire("when", &LockOptions::new()).await.expect("free");
    assert!(!locks.scope(when(false, &asked)).await.expect("there is no lock to fail"));
    // Without a lock there need not be a manager either.
    assert!(!when(false, &asked).await.expect("there is no lock to fail"));
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

struct Service {
    locks: LockManager,
}

impl Service {
    #[cache_lock(prefix = "with", with = self.locks, bind = lock)]
    async fn with(&self, other: &LockManager) -> Result<(bool, bool), LockError> {
        assert_eq!(lock.key().as_str(), "with");
        Ok((is_held(&self.locks, "with").await, is_held(other, "with").await))
    }
}

#[tokio::test]
async fn with_names_manager() {
    let service = Service { locks: LockManager::in_memory() };
    let scope = LockManager::in_memory();
    assert_eq!(scope.scope(service.with(&scope)).await.expect("free"), (true, false));
}

#[cache_lock(prefix = "token", bind = lock)]
async fn token() -> Result<i64, LockError> {
    Ok(lock.token().as_i64())
}

#[tokio::test]
async fn bind_gives_guard_with_its_token() {
    let locks = LockManager::in_memory();
    let first = locks.scope(token()).await.expect("free");
    assert!(locks.scope(token()).await.expect("free") > first);
}

#[cache_lock(prefix = "path", timeout = 0, or_else = describe)]
async fn or_else_path() -> String {
    "done".to_owned()
}

fn describe(error: LockError) -> String {
    format!("contended: {}, key: {:?}", error.is_contended(), error.key().map(LockKey::as_str))
}

#[tokio::test]
async fn or_else_path_makes_return_value() {
    let locks = LockManager::in_memory();
    assert_eq!(locks.scope(or_else_path()).await, "done");
    let _held = locks.acquire("path", &LockOptions::new()).await.expect("free");
    assert_eq!(locks.scope(or_else_path()).await, "contended: true, key: Some(\"path\")");
    assert_eq!(or_else_path().await, "contended: false, key: None");
}

#[cache_lock(
    prefix = "closure",
    key = "{name}",
    timeout = 0,
    on_lost = "finish",
    or_else = |error| { calls.fetch_add(1, Ordering::Relaxed); (name, error.is_contended()) }
)]
async fn or_else_closure(name: String, calls: &AtomicUsize) -> (String, bool) {
    (name + "!", false)
}

#[tokio::test]
async fn or_else_closure_has_arguments() {
    let (locks, calls) = (LockManager::in_memory(), AtomicUsize::new(0));
    let run = || locks.scope(or_else_closure("a".to_owned(), &calls));
    assert_eq!(run().await, ("a!".to_owned(), false));
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    let _held = locks.acquire("closure:a", &LockOptions::new()).await.expect("free");
    assert_eq!(run().await, ("a".to_owned(), true));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[cache_lock(prefix = "skip", skip_if_locked)]
async fn skip() -> Result<Option<u8>, LockError> {
    Ok(Some(1))
}

#[tokio::test]
async fn skip_if_locked_decides_only_busy() {
    let locks = LockManager::in_memory();
    assert_eq!(locks.scope(skip()).await.expect("free"), Some(1));
    let held = locks.acquire("skip", &LockOptions::new()).await.expect("free");
    assert_eq!(locks.scope(skip()).await.expect("busy is no error"), None);
    drop(held);
    locks.shutdown().await;
    assert!(matches!(locks.scope(skip()).await, Err(LockError::ShutDown)));
}

const SHORT: Duration = Duration::from_millis(100);

#[cache_lock(prefix = "lost", expire = SHORT, renew = false, bind = lock)]
async fn cancelled(ended: &AtomicUsize) -> Result<(), LockError> {
    lock.lost().await;
    tokio::task::yield_now().await;
    ended.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

#[cache_lock(prefix = "lost", expire = SHORT, renew = false, bind = lock, on_lost = "finish")]
async fn finished(ended: &AtomicUsize) -> Result<bool, LockError> {
    lock.lost().await;
    tokio::task::yield_now().await;
    ended.fetch_add(1, Ordering::Relaxed);
    Ok(lock.is_lost())
}

#[cache_lock(prefix = "lost", on_lost = "finish", when = locked, bind = lock)]
async fn finished_perhaps_without_a_lock(locked: bool) -> Result<bool, LockError> {
    Ok(lock.is_some())
}

#[cache_lock(prefix = "lost", expire = SHORT, renew = false, bind = lock, or_else = |_| Err(Early))]
async fn cancelled_with_closure() -> Result<(), Early> {
    lock.lost().await;
    tokio::task::yield_now().await;
    Ok(())
}

#[derive(Debug, PartialEq)]
struct Early;

impl From<LockError> for Early {
    fn from(error: LockError) -> Self {
        assert!(error.is_lost(), "{error}");
        Self
    }
}

#[tokio::test]
async fn on_lost_cancels_or_lets_finish() {
    let (locks, ended) = (LockManager::in_memory(), AtomicUsize::new(0));
    assert!(locks.scope(cancelled(&ended)).await.expect_err("lost").is_lost());
    assert_eq!(ended.load(Ordering::Relaxed), 0);
    assert!(locks.scope(finished(&ended)).await.expect("finished"));
    assert_eq!(ended.load(Ordering::Relaxed), 1);
    assert_eq!(locks.scope(cancelled_with_closure()).await, Err(Early));
    for locked in [true, false] {
        let ran = locks.scope(finished_perhaps_without_a_lock(locked)).await;
        assert_eq!(ran.expect("free"), locked);
    }
}

#[cache_lock(prefix = "outer")]
async fn outer() -> Result<(), LockError> {
    inner().await
}

#[cache_lock(prefix = "outer")]
async fn inner() -> Result<(), LockError> {
    Ok(())
}

#[tokio::test]
async fn nested_lock_fails_at_once() {
    let nested = LockManager::in_memory().scope(outer()).await;
    assert!(matches!(nested, Err(LockError::Nested { .. })), "{nested:?}");
}
