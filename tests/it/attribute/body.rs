//! The body and its outcome.

use super::*;

#[derive(Debug, PartialEq)]
enum Failed {
    Body,
    Lock,
}

impl From<LockError> for Failed {
    fn from(_: LockError) -> Self {
        Self::Lock
    }
}

#[cache_lock(prefix = "body", timeout = 0, bind = lock)]
async fn run(runs: &AtomicUsize, fail: bool) -> Result<bool, Failed> {
    runs.fetch_add(1, Ordering::Relaxed);
    if fail {
        return Err(Failed::Body);
    }
    Ok(!lock.is_lost())
}

#[tokio::test]
async fn outcome_is_returned_and_lock_is_free_again() {
    let (locks, runs) = (LockManager::in_memory(), AtomicUsize::new(0));
    assert_eq!(locks.scope(run(&runs, false)).await, Ok(true));
    assert_eq!(locks.scope(run(&runs, true)).await, Err(Failed::Body));
    assert_eq!(locks.scope(run(&runs, false)).await, Ok(true));
    assert_eq!(runs.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn does_not_run_without_lock() {
    let (locks, runs) = (LockManager::in_memory(), AtomicUsize::new(0));
    let held = locks.acquire("body", &LockOptions::new()).await.expect("free");
    assert_eq!(locks.scope(run(&runs, false)).await, Err(Failed::Lock));
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    held.release().await.expect("the memory store answers");
    // Nor without a manager.
    assert_eq!(run(&runs, false).await, Err(Failed::Lock));
    locks.shutdown().await;
    assert_eq!(locks.scope(run(&runs, false)).await, Err(Failed::Lock));
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}

#[cache_lock(prefix = "panic")]
async fn panics(_id: u64) -> Result<(), LockError> {
    std::panic::panic_any("from the body");
}

#[tokio::test]
async fn panic_reaches_caller_and_frees_lock() {
    let locks = LockManager::in_memory();
    let scope = locks.clone();
    let task = tokio::spawn(async move { scope.scope(panics(1)).await });
    let panic = task.await.expect_err("the body panics").into_panic();
    assert_eq!(panic.downcast_ref(), Some(&"from the body"));
    assert!(!is_held(&locks, "panic").await);
}

#[cache_lock(prefix = "exclusive", key = "{id}")]
async fn read_and_write(id: u64, shelf: &Mutex<u64>) -> Result<(), LockError> {
    let read = *shelf.lock().expect("no test panics with it");
    tokio::task::yield_now().await;
    *shelf.lock().expect("no test panics with it") = read + id;
    Ok(())
}

#[tokio::test]
async fn runs_alone() {
    let (locks, shelf) = (LockManager::in_memory(), Arc::new(Mutex::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (locks, shelf) = (locks.clone(), Arc::clone(&shelf));
        tasks.spawn(async move { locks.scope(read_and_write(1, &shelf)).await });
    }
    for result in tasks.join_all().await {
        result.expect("all get their turn");
    }
    assert_eq!(*shelf.lock().expect("no test panics with it"), 50);
}
