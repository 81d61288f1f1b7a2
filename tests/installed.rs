//! A binary of its own: a process installs one manager, and other tests need a process without one.

use std::{thread, time::Duration};

use cache_lock::{LockError, LockKey, LockManager, LockOptions, private};
use test_support::{RedisServer, wait_until};
use tokio::runtime::{Builder, Runtime};

const PATIENT: LockOptions = LockOptions::new().timeout(Duration::from_secs(60));

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn multi_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// A program may have several runtimes, such as one for each `#[tokio::test]`.
#[test]
fn installed_manager_serves_all() {
    let server = RedisServer::start();
    let locks = current_thread().block_on(LockManager::connect(&server.url()));
    locks.expect("the server is there").install().expect("it is the first");

    let second = LockManager::in_memory().install().expect_err("there is one");
    assert!(matches!(second, LockError::AlreadyInstalled) && !second.is_retryable(), "{second}");

    let section = async |number: u32| {
        let key = LockKey::new("room").part(number);
        let guard = private::acquire(private::manager(), key, &PATIENT).await.expect("free");
        assert_eq!(server.cli(&["EXISTS", guard.key().as_str()]), "1", "it is that manager's lock");
        private::release(guard).await;
    };
    for make in [current_thread, multi_thread] {
        make().block_on(section(0));
    }
    thread::scope(|scope| {
        for number in 1..=4 {
            scope.spawn(move || current_thread().block_on(section(number)));
        }
    });
    let installed = private::manager().expect("it stays");
    wait_until("the connections are gone", || installed.in_hand().connections == 0);
}
