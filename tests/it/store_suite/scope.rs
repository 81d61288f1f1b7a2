//! The manager that the attribute finds. Its expansion calls `private`.

use cache_lock::{LockError, LockManager, LockManagerBuilder, MemoryStore, private};

use crate::common::fleet::PATIENT;

/// A manager, and the store by which to tell that it was used.
fn manager() -> (LockManager, MemoryStore) {
    let store = MemoryStore::new();
    let locks = LockManagerBuilder::default().in_memory(store.clone());
    (locks.expect("the settings are fine"), store)
}

/// Takes a lock from the manager that is found, and says how many locks each store has then.
async fn locks_of(stores: [&MemoryStore; 2]) -> [usize; 2] {
    let guard = private::acquire(private::manager(), "job".into(), &PATIENT).await;
    let _guard = guard.expect("there is a manager, and the lock is free");
    stores.map(MemoryStore::len)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn innermost_scope_counts() {
    let ((outer, outer_store), (inner, inner_store)) = (manager(), manager());
    let stores = [&outer_store, &inner_store];
    let in_outer = async {
        assert_eq!(locks_of(stores).await, [1, 0]);
        let in_inner = async {
            tokio::task::yield_now().await;
            assert_eq!(locks_of(stores).await, [0, 1]);
        };
        // Both are polled by turns, and each has its own.
        tokio::join!(inner.scope(in_inner), async {
            tokio::task::yield_now().await;
            assert_eq!(locks_of(stores).await, [1, 0]);
        });
        assert_eq!(locks_of(stores).await, [1, 0]);
    };
    outer.scope(in_outer).await;
    assert!(matches!(private::manager(), Err(LockError::NoManager)));
}

#[tokio::test]
async fn scope_does_not_cross_spawn() {
    let (locks, _) = manager();
    let in_scope = async {
        let task = tokio::spawn(async { private::manager().map(drop) });
        assert!(matches!(task.await.expect("no panic"), Err(LockError::NoManager)));
        let own = private::manager().expect("the scope's");
        let task = async move { own.scope(async { private::manager().map(drop) }).await };
        tokio::spawn(task).await.expect("no panic").expect("a scope of its own");
    };
    locks.scope(in_scope).await;
}

#[tokio::test]
async fn without_manager_there_is_no_lock() {
    let error = private::acquire(private::manager(), "job".into(), &PATIENT).await;
    let error = error.expect_err("there is no manager");
    assert!(matches!(error, LockError::NoManager) && !error.is_retryable(), "{error}");
}
