//! Every grant has a number greater than all earlier ones of its key.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cache_lock::{LockGuard, LockKey, LockManager, MemoryStore};
use test_support::{Data, RedisServer};

use crate::common::fleet::{Fleet, PATIENT, guarded, on_both_stores};

/// The greatest integer that every JSON client can carry.
const SAFE: i64 = 1 << 53;

on_both_stores!(
    tokens_rise_across_managers,
    tokens_rise_in_order_of_holds,
    token_is_positive_integer,
);

async fn tokens_rise_across_managers(fleet: Fleet) {
    let mut managers = Vec::new();
    for _ in 0..3 {
        managers.push(fleet.manager().await);
    }
    let mut last = 0;
    for locks in managers.iter().cycle().take(60) {
        let token = token(locks, "item").await;
        assert!(last < token && token < SAFE, "{last} < {token}");
        last = token;
    }
}

async fn tokens_rise_in_order_of_holds(fleet: Fleet) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let locks = fleet.manager().await;
        for _ in 0..20 {
            let (locks, seen) = (locks.clone(), Arc::clone(&seen));
            tasks.push(tokio::spawn(async move {
                let note = async |lock: &LockGuard| {
                    seen.lock().expect("no panic").push(lock.token());
                };
                locks.run("item", &PATIENT, note).await.expect("its turn comes");
            }));
        }
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    let seen = seen.lock().expect("no panic");
    assert_eq!(seen.len(), 60);
    assert!(seen.is_sorted_by(|earlier, later| earlier < later), "{seen:?}");
}

async fn token_is_positive_integer(fleet: Fleet) {
    let locks = fleet.manager().await;
    let guard = locks.acquire("item", &PATIENT).await.expect("free");
    let number = guard.token().as_i64();
    assert_eq!(i64::from(guard.token()), number);
    assert_eq!(guard.token().to_string(), number.to_string());
    assert!(number > 0);
}

#[tokio::test]
async fn tokens_rise_when_server_has_lost_its_data() {
    guarded(async {
        let server = RedisServer::start();
        let locks = LockManager::connect(&server.url()).await.expect("the server is there");
        let first = token(&locks, "item").await;
        server.cli(&["FLUSHALL"]);
        let second = token(&locks, "item").await;
        server.restart(Data::Lose);
        let third = token(&locks, "item").await;
        server.restart(Data::Keep);
        let fourth = token(&locks, "item").await;
        assert!(first < second && second < third && third < fourth && fourth < SAFE);
    })
    .await;
}

/// A clock that was set back does not set the numbers back, and none of their digits gets lost.
#[tokio::test]
async fn tokens_rise_when_servers_clock_is_behind() {
    guarded(async {
        let server = RedisServer::start();
        let locks = LockManager::connect(&server.url()).await.expect("the server is there");
        let ahead = SAFE - 1000;
        server.cli(&["SET", "item:{item}:fence", &ahead.to_string()]);
        for step in 1..=10 {
            assert_eq!(token(&locks, "item").await, ahead + step);
        }
    })
    .await;
}

#[tokio::test]
async fn fence_is_kept_for_one_day() {
    guarded(async {
        let server = RedisServer::start();
        let locks = LockManager::connect(&server.url()).await.expect("the server is there");
        let last = token(&locks, "item").await;
        let fence = "item:{item}:fence";
        assert_eq!(server.cli(&["GET", fence]), last.to_string());
        let left = server.cli(&["PTTL", fence]).parse().map(Duration::from_millis);
        let (hour, left) = (Duration::from_secs(3600), left.expect("it has an end"));
        assert!(23 * hour < left && left <= 24 * hour, "{left:?}");
        assert_eq!(server.cli(&["DBSIZE"]), "1", "the fence is all that is left of an idle key");
    })
    .await;
}

#[tokio::test]
async fn later_memory_store_goes_on_where_earlier_one_was() {
    let first = LockManager::in_memory();
    let mut last = 0;
    for _ in 0..100 {
        last = token(&first, "item").await;
    }
    // The numbers follow the clock, which has to move on by a microsecond for each of them.
    std::thread::sleep(Duration::from_millis(1));
    let second = LockManager::in_memory();
    assert!(token(&second, "item").await > last);
}

#[tokio::test]
async fn idle_keys_leave_nothing_in_memory() {
    let store = MemoryStore::new();
    let locks = LockManager::builder().in_memory(store.clone()).expect("the settings are fine");
    for number in 0..1000 {
        token(&locks, LockKey::new("item").part(number)).await;
    }
    assert!(store.is_empty(), "{store:?}");
}

async fn token(locks: &LockManager, key: impl Into<LockKey>) -> i64 {
    let body = async |lock: &LockGuard| lock.token().as_i64();
    locks.run(key, &PATIENT, body).await.expect("it is free")
}
