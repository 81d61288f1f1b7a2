//! The line of the waiters of one process: order, cost, and fencing tokens.

use std::sync::{Arc, Mutex};

use cache_lock::{LockGuard, LockManager};
use test_support::RedisServer;
use tokio::task::JoinHandle;

use super::{LONG, SECOND, acquiring, poll_once, wait_until_idle};
use crate::common::fleet::{Fleet, guarded, on_both_stores};

on_both_stores! {
    first_caller_is_served_first,
    zero_timeouts_end_at_once,
}

/// What happens in one section after the other.
type Sections = Arc<Mutex<Vec<(usize, i64)>>>;

/// So many callers, in the order of their numbers, each with one section.
fn line(locks: &LockManager, callers: usize, sections: &Sections) -> Vec<JoinHandle<()>> {
    (0..callers)
        .map(|number| {
            let mut waiting = acquiring(locks, LONG);
            // Here it takes its place.
            poll_once(&mut waiting);
            let sections = Arc::clone(sections);
            tokio::spawn(async move {
                let guard = waiting.await.expect("it gets its turn");
                note(&sections, number, &guard);
                guard.release().await.expect("the store answers");
            })
        })
        .collect()
}

fn note(sections: &Sections, number: usize, guard: &LockGuard) {
    sections.lock().expect("no panic").push((number, guard.token().as_i64()));
}

async fn all(line: Vec<JoinHandle<()>>) {
    for caller in line {
        guarded(caller).await.expect("no panic");
    }
}

fn assert_rising(sections: &Sections, count: usize) {
    let sections = sections.lock().expect("no panic");
    assert_eq!(sections.len(), count);
    assert!(sections.is_sorted_by(|before, after| before.1 < after.1), "{sections:?}");
}

/// The last number that was reserved, and the server's time in microseconds after that.
fn fence_and_time(server: &RedisServer) -> (i64, i64) {
    let fence = server.cli(&["GET", "room:{room}:fence"]).parse().expect("a number");
    let time = "local time = redis.call('TIME') return time[1] * 1000000 + time[2]";
    (fence, server.cli(&["EVAL", time, "0"]).parse().expect("a number"))
}

async fn first_caller_is_served_first(fleet: Fleet) {
    let locks = fleet.manager().await;
    let sections = Sections::default();
    let guard = locks.acquire("room", &LONG).await.expect("it is free");
    let line = line(&locks, 300, &sections);
    drop(guard);
    all(line).await;
    assert_rising(&sections, 300);
    let order: Vec<_> =
        sections.lock().expect("no panic").iter().map(|&(number, _)| number).collect();
    assert!(order.is_sorted(), "{order:?}");
    wait_until_idle(&locks);
    assert_eq!(fleet.records(), 0);
}

/// Nothing is asked for them, as the process knows that it holds the lock.
async fn zero_timeouts_end_at_once(fleet: Fleet) {
    let locks = fleet.manager().await;
    let guard = locks.acquire("room", &LONG).await.expect("it is free");
    // Each request is by hash at first; a new connection is looked over by EVAL.
    let calls = || fleet.server().map(|server| server.calls("evalsha"));
    let before = calls();
    for _ in 0..100 {
        let taken = locks.try_acquire("room", &LONG).await.expect("the store is not needed");
        assert!(taken.is_none(), "two hold it");
    }
    assert_eq!(calls(), before);
    drop(guard);
    wait_until_idle(&locks);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_sections_cost_few_commands() {
    let server = RedisServer::start();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    let sections = Sections::default();
    let guard = locks.acquire("room", &LONG).await.expect("it is free");
    let line = line(&locks, 1000, &sections);
    let before = server.calls("evalsha");
    drop(guard);
    all(line).await;
    wait_until_idle(&locks);
    assert_rising(&sections, 1000);
    let calls = server.calls("evalsha") - before;
    assert!(calls < 50, "{calls} calls for 1000 sections");
    let (fence, time) = fence_and_time(&server);
    assert!(fence <= time, "{fence} is ahead of the time {time}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lone_caller_reserves_one_number() {
    let server = RedisServer::start();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    let mut last = 0;
    for _ in 0..20 {
        let guard = locks.acquire("room", &LONG).await.expect("it is free");
        let (fence, time) = fence_and_time(&server);
        assert_eq!(guard.token().as_i64(), fence);
        assert!(last < fence && fence <= time);
        last = fence;
        guard.release().await.expect("the server answers");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_rise_between_managers() {
    let server = RedisServer::start();
    let (sections, mut callers) = (Sections::default(), Vec::new());
    for _ in 0..2 {
        let locks = LockManager::connect(&server.url()).await.expect("the server runs");
        for number in 0..50 {
            let (locks, sections) = (locks.clone(), Arc::clone(&sections));
            callers.push(tokio::spawn(async move {
                for _ in 0..20 {
                    let guard = locks.acquire("room", &LONG).await.expect("it gets its turn");
                    note(&sections, number, &guard);
                    guard.release().await.expect("the server answers");
                }
            }));
        }
    }
    all(callers).await;
    assert_rising(&sections, 2000);
    let (fence, time) = fence_and_time(&server);
    assert!(fence <= time, "{fence} is ahead of the time {time}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_go_on_above_those_of_data_that_were_lost() {
    let server = RedisServer::start();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    let sections = Sections::default();
    for round in 1..=10 {
        let guard = locks.acquire("room", &LONG).await.expect("it is free");
        note(&sections, 0, &guard);
        let line = line(&locks, 200, &sections);
        drop(guard);
        all(line).await;
        wait_until_idle(&locks);
        server.cli(&["FLUSHALL"]);
        assert_rising(&sections, round * 201);
    }
}

/// Callers that do not suit each other's leases ask the server each time, for as many numbers as
/// there are callers: for far more than the time that goes by.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_that_are_reserved_faster_than_time_goes_by() {
    let server = RedisServer::start();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    let sections = Sections::default();
    let guard = locks.acquire("room", &LONG).await.expect("it is free");
    let line: Vec<_> = (0..3000)
        .map(|number| {
            let expire = if number % 2 == 0 { 60 * SECOND } else { 10 * SECOND };
            let mut waiting = acquiring(&locks, LONG.expire(expire));
            poll_once(&mut waiting);
            let sections = Arc::clone(&sections);
            tokio::spawn(async move {
                let guard = waiting.await.expect("it gets its turn");
                note(&sections, number, &guard);
            })
        })
        .collect();
    let before = server.calls("evalsha");
    drop(guard);
    all(line).await;
    let (fence, time) = fence_and_time(&server);
    assert!(fence <= time, "{fence} is ahead of the time {time}");
    assert_rising(&sections, 3000);
    assert!(server.calls("evalsha") - before >= 2900, "they were handed the lock");
    wait_until_idle(&locks);
}
