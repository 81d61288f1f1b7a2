//! When and how the key is made.

use super::*;

/// A key part that counts how often it is asked.
struct Counted<'a>(&'a AtomicUsize);

impl LockKeyPart for Counted<'_> {
    fn write_part(&self, part: &mut PartWriter<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        part.push_str("x");
    }
}

#[cache_lock(prefix = "once", key = "{id}", timeout = "20ms", bind = lock)]
async fn once(id: Counted<'_>) -> Result<String, LockError> {
    let _ = &id;
    Ok(lock.key().to_string())
}

#[tokio::test]
async fn key_is_evaluated_once_however_often_server_is_asked() {
    let locks = LockManager::in_memory();
    let asked = AtomicUsize::new(0);
    assert_eq!(locks.scope(once(Counted(&asked))).await.expect("free"), "once:x");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let _held = locks.acquire("once:x", &LockOptions::new()).await.expect("free");
    assert!(locks.scope(once(Counted(&asked))).await.expect_err("held").is_contended());
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[cache_lock(prefix = "mutated", key = "{id}", bind = lock)]
async fn mutated(mut id: String, locks: &LockManager) -> Result<(), LockError> {
    id.push('!');
    assert_eq!(lock.key().as_str(), "mutated:a");
    assert!(is_held(locks, "mutated:a").await);
    Ok(())
}

#[tokio::test]
async fn key_is_made_before_body() {
    let locks = LockManager::in_memory();
    locks.scope(mutated("a".to_owned(), &locks)).await.expect("free");
    assert!(!is_held(&locks, "mutated:a").await);
}

#[cache_lock(prefix = "p", key = "{a}:{b}", bind = lock)]
async fn template(a: &str, b: u8) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

#[tokio::test]
async fn of_template_equals_that_of_parts() {
    let locks = LockManager::in_memory();
    for a in ["x", "x:y", "%", "{x}", ""] {
        let key = locks.scope(template(a, 1)).await.expect("free");
        assert_eq!(key, LockKey::new("p").part(a).part(1_u8));
    }
}
