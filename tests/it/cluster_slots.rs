//! The fence lies in the cluster slot of its lock, by the word of a server in cluster mode.

use std::time::Duration;

use cache_lock::{BackendErrorKind, LockError, LockKey, LockManager, LockOptions};
use test_support::{RedisServer, wait_until};

const ONCE: LockOptions = LockOptions::new().timeout(Duration::ZERO);

/// A cluster of one, which has all slots.
fn cluster() -> RedisServer {
    let server = RedisServer::builder().config("cluster-enabled", "yes").start();
    // One by one: Redis 6.2 knows no ranges.
    let slots: Vec<_> = (0..16384).map(|slot| slot.to_string()).collect();
    let slots = slots.iter().map(String::as_str);
    server.cli(&["CLUSTER", "ADDSLOTS"].into_iter().chain(slots).collect::<Vec<_>>());
    wait_until("the cluster is up", || {
        server.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
    });
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_and_fence_share_slot() {
    let server = cluster();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    let keys = [
        "room".into(),
        LockKey::new("room").part(42),
        LockKey::new("room").part("a:b}{c%"),
        LockKey::new("").part("x"),
        LockKey::new("größe").part("ü"),
        LockKey::new("{tenant}:room").part(42),
        LockKey::new("room:{tenant}").part(42),
        LockKey::new("a{b{c}").part(1),
        LockKey::new("{a}{b}").part(1),
        "{a:1}".into(),
    ];
    let slot = |key: &str| server.cli(&["CLUSTER", "KEYSLOT", key]);
    for key in keys {
        server.cli(&["FLUSHALL"]);
        // A script whose keys lie in different slots is refused.
        let guard = locks.acquire(key.clone(), &ONCE).await;
        let guard = guard.unwrap_or_else(|error| panic!("{error}"));
        guard.extend(Duration::from_secs(60)).await.expect("it is held");
        let names = server.cli(&["KEYS", "*"]);
        let names: Vec<_> = names.lines().collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names.contains(&key.as_str()), "{names:?}");
        assert_eq!(slot(names[0]), slot(names[1]), "{names:?}");
        guard.release().await.expect("the server runs");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_share_no_record() {
    let server = RedisServer::start();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    let mut guards = Vec::new();
    for key in ["job", "job:{job}", "a:b", "a:{a:b}", "{a}", "{a}:", "{a}:{a}"] {
        let guard = locks.acquire(key, &ONCE).await;
        guards.push(guard.unwrap_or_else(|error| panic!("{error}")));
        let names = server.cli(&["KEYS", "*"]).lines().count();
        assert_eq!(names, 2 * guards.len(), "a lock and a fence for each, {key} too");
    }
}

/// Where it is not so, the key is refused before anything is sent.
#[tokio::test(flavor = "multi_thread")]
async fn key_whose_slot_fence_cannot_share_is_refused() {
    let server = cluster();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    for key in ["room{", "room}", "{}room", "room:{}:{a}", "}room{a"] {
        let error = locks.acquire(key, &ONCE).await.expect_err(key);
        assert!(matches!(error, LockError::InvalidKey { .. }), "{error:?}");
    }
    assert_eq!(server.cli(&["DBSIZE"]), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_does_not_have_slot_says_so() {
    let server = RedisServer::builder().config("cluster-enabled", "yes").start();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    let error = locks.acquire("room", &ONCE).await.expect_err("it serves no slots");
    let LockError::Backend { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), BackendErrorKind::Unavailable, "{error}");
    assert!(!error.is_contended(), "{error}");
}
