//! A binary of its own, since it counts the threads of its process: a manager's thread ends with the
//! manager.
#![cfg(target_os = "linux")]

use std::{fs, time::Duration};

use cache_lock::{LockManager, LockOptions};
use test_support::{RedisServer, wait_until};

/// The threads of this process that managers have started.
fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("/proc is mounted");
    let names = tasks.flatten().flat_map(|task| fs::read_to_string(task.path().join("comm")));
    names.filter(|name| name.trim_end() == "cache-lock").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thread_ends_with_last_handle_and_guard() {
    let server = RedisServer::start();
    let options = LockOptions::new().expire(Duration::from_secs(60));
    for redis in [false, true] {
        let locks = if redis {
            LockManager::connect(&server.url()).await.expect("the server is there")
        } else {
            LockManager::in_memory()
        };
        let guard = locks.acquire("job", &options).await.expect("free");
        let other = locks.acquire("other", &options).await.expect("free");
        let clone = locks.clone();
        // A thread names itself, when it first runs.
        wait_until("the thread runs", || threads() == 1);
        drop(locks);
        other.release().await.expect("no failure");
        assert!(!guard.is_lost());
        assert_eq!(threads(), 1, "there is another handle");
        drop(clone);
        guard.extend(Duration::from_secs(120)).await.expect("there is a guard, so all goes on");
        assert_eq!(threads(), 1);
        drop(guard);
        wait_until("the thread has ended", || threads() == 0);
        if redis {
            assert_eq!(server.cli(&["EXISTS", "job"]), "0", "it was released before that");
        }
    }
    let idle = LockManager::in_memory();
    assert_eq!(threads(), 0, "it starts when it is needed");
    drop(idle);
}
