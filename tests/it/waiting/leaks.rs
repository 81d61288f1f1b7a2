//! Nothing is kept of keys that are idle, and many held ones cost few commands.

use std::time::Duration;

use cache_lock::{LockGuard, LockManager};
use test_support::{RedisServer, wait_until};

use super::{LONG, SECOND, wait_until_clean, wait_until_idle};
use crate::common::fleet::{Fleet, guarded, on_both_stores};

on_both_stores! { idle_keys_leave_nothing }

/// As many at a time as one connection carries well.
const TASKS: usize = 64;

async fn in_tasks<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    keys: usize,
    task: impl Fn(usize) -> F + Send + Sync + Clone + 'static,
) -> Vec<T> {
    let tasks: Vec<_> = (0..TASKS)
        .map(|first| {
            let task = task.clone();
            tokio::spawn(async move {
                let mut done = Vec::new();
                for key in (first..keys).step_by(TASKS) {
                    done.push(task(key).await);
                }
                done
            })
        })
        .collect();
    let mut done = Vec::new();
    for task in tasks {
        done.extend(guarded(task).await.expect("no panic"));
    }
    done
}

async fn cycles(locks: &LockManager, keys: usize) {
    let manager = locks.clone();
    in_tasks(keys, move |key| {
        let locks = manager.clone();
        async move {
            let guard = locks.acquire(format!("room:{key}"), &LONG).await.expect("it is free");
            // One that takes longer than an attempt goes on in the background.
            let _ = guard.release().await;
        }
    })
    .await;
    wait_until_idle(locks);
}

async fn idle_keys_leave_nothing(fleet: Fleet) {
    let locks = fleet.manager().await;
    let keys = if matches!(fleet, Fleet::Memory(_)) { 100_000 } else { 10_000 };
    cycles(&locks, keys).await;
    assert_eq!(fleet.records(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; run in release mode"]
async fn hundred_thousand_keys() {
    let server = RedisServer::start();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    cycles(&locks, 100_000).await;
    wait_until_clean(&server);
}

/// So many leases are extended by few calls, and none is lost.
async fn held_at_once(keys: usize, expire: Duration, rounds: u64) {
    let options = LONG.expire(expire);
    let server = RedisServer::start();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    let manager = locks.clone();
    let guards = in_tasks(keys, move |key| {
        let locks = manager.clone();
        async move { locks.acquire(format!("room:{key}"), &options).await.expect("it is free") }
    })
    .await;
    let counts = || (server.calls("pexpire"), server.calls("evalsha"));
    let (renewed, calls) = counts();
    wait_until("all were extended", || counts().0 >= renewed + keys as u64 * rounds);
    let after = counts();
    let (renewed, calls) = (after.0 - renewed, after.1 - calls);
    eprintln!("{renewed} extensions by {calls} calls");
    assert!(calls * 8 < renewed, "{renewed} extensions by {calls} calls");
    assert_eq!(guards.iter().filter(|guard| guard.is_lost()).count(), 0);
    assert_eq!(locks.in_hand().keys, keys);
    // Those that are due are looked at one by one.
    wait_until("all are looked after", || locks.in_hand().leases == keys);
    guards.into_iter().for_each(drop::<LockGuard>);
    wait_until_idle(&locks);
    wait_until_clean(&server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_leases_are_extended_together() {
    held_at_once(20_000, 6 * SECOND, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; run in release mode"]
async fn hundred_thousand_leases() {
    held_at_once(100_000, 10 * SECOND, 10).await;
}
