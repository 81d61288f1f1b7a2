//! G1 in processes that fork: children of one process are holders of their own.

use std::{future::Future, time::Duration};

use cache_lock::{BackendErrorKind, LockError, LockManager, LockOptions};
use test_support::{RedisServer, wait_until};

const OPTIONS: LockOptions =
    LockOptions::new().expire(Duration::from_secs(600)).timeout(Duration::ZERO);

const ACQUIRED: i32 = 10;
const CONTENDED: i32 = 11;
const FORKED: i32 = 12;
const FAILED: i32 = 13;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// Acquires, and ends with the lock in hand.
fn acquire(locks: &LockManager) -> i32 {
    code(block_on(locks.acquire("room", &OPTIONS)))
}

/// What a call has come to. What it returns is not dropped.
fn code<T>(called: Result<T, LockError>) -> i32 {
    match called {
        Ok(value) => {
            std::mem::forget(value);
            ACQUIRED
        }
        Err(LockError::Contended { .. }) => CONTENDED,
        Err(LockError::Backend { source, .. }) if source.kind() == BackendErrorKind::Forked => {
            FORKED
        }
        Err(error) => {
            eprintln!("{error}");
            FAILED
        }
    }
}

/// Runs `body` in a child, and returns the child's code.
fn in_child(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the process has no thread that holds a lock of the allocator or of the standard library:
    // it has none but this one, or that of a manager, which sleeps.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "it forks");
    if child == 0 {
        let code = body();
        // SAFETY: ends the child at once, without the drops of what is the parent's.
        unsafe { libc::_exit(code) }
    }
    let mut status = 0;
    wait_until("the child has ended", || {
        // SAFETY: `status` lives, and the child is ours.
        unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) == child }
    });
    assert!(libc::WIFEXITED(status), "{status}");
    libc::WEXITSTATUS(status)
}

fn children_of_a_lazy_manager_exclude_each_other() {
    let server = RedisServer::start();
    let locks = LockManager::builder().connect_lazy(&server.url()).expect("a URL");
    assert_eq!(in_child(|| acquire(&locks)), ACQUIRED);
    assert_eq!(in_child(|| acquire(&locks)), CONTENDED);
    assert_eq!(acquire(&locks), CONTENDED, "the parent is another one as well");
}

fn child_of_a_started_manager_is_refused() {
    let server = RedisServer::start();
    for locks in [
        LockManager::in_memory(),
        LockManager::builder().connect_lazy(&server.url()).expect("a URL"),
    ] {
        block_on(async {
            let guard = locks.acquire("other", &OPTIONS).await.expect("it is free");
            guard.release().await.expect("the server answers");
        });
        assert_eq!(in_child(|| acquire(&locks)), FORKED);
        let shut_down = in_child(|| {
            block_on(locks.shutdown());
            ACQUIRED
        });
        assert_eq!(shut_down, ACQUIRED, "it does not wait for a thread that is not there");
        assert_eq!(acquire(&locks), ACQUIRED, "the parent's manager goes on");
    }
}

fn child_of_a_holder_leaves_its_lease_alone() {
    let server = RedisServer::start();
    for locks in [
        LockManager::in_memory(),
        LockManager::builder().connect_lazy(&server.url()).expect("a URL"),
    ] {
        // A copy of it is the child's.
        let mut guard = block_on(locks.acquire("room", &OPTIONS)).ok();
        let mut take = || guard.take().expect("it is free");
        assert_eq!(in_child(|| code(block_on(take().extend(Duration::from_secs(900))))), FORKED);
        assert_eq!(in_child(|| code(block_on(take().release()))), FORKED);
        let dropped = in_child(|| {
            block_on(async { drop(take()) });
            ACQUIRED
        });
        assert_eq!(dropped, ACQUIRED);
        assert_eq!(acquire(&locks), CONTENDED);
        block_on(take().release()).expect("the server answers");
        assert_eq!(acquire(&locks), ACQUIRED, "the parent releases");
    }
}

fn main() {
    children_of_a_lazy_manager_exclude_each_other();
    child_of_a_started_manager_is_refused();
    child_of_a_holder_leaves_its_lease_alone();
    println!("forked processes exclude each other");
}
