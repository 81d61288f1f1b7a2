//! Records that others have left under the names of ours: never broken, and told apart.

use std::time::Duration;

use cache_lock::{
    BackendErrorKind, LockError, LockManager, LockOptions, LostReason, ReleaseOutcome,
};
use test_support::RedisServer;

const ONCE: LockOptions = LockOptions::new().timeout(Duration::ZERO);
const FENCE: &str = "room:{room}:fence";

async fn start() -> (RedisServer, LockManager) {
    let server = RedisServer::start();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    (server, locks)
}

async fn assert_foreign(server: &RedisServer, locks: &LockManager, key: &str, why: &str) {
    let before = server.command(&["DUMP", key]);
    let error = locks.acquire("room", &ONCE).await.expect_err(why);
    let LockError::Backend { source, .. } = &error else { panic!("{why}: {error:?}") };
    assert_eq!(source.kind(), BackendErrorKind::ForeignRecord, "{why}: {error}");
    assert!(!error.is_retryable() && !error.is_contended());
    assert!(error.to_string().contains("is not a lock"), "{error}");
    assert_eq!(server.command(&["DUMP", key]), before, "{why}: it was touched");
    assert_eq!(server.cli(&["KEYS", "*"]), key, "{why}: something else was left");
}

const OTHER_TYPES: [&[&str]; 4] =
    [&["RPUSH", "", "x"], &["SADD", "", "x"], &["HSET", "", "x", "y"], &["ZADD", "", "1", "x"]];

/// A command on `key` that makes a record of another type.
fn on<'a>(command: &[&'a str], key: &'a str) -> Vec<&'a str> {
    command.iter().map(|&word| if word.is_empty() { key } else { word }).collect()
}

#[tokio::test]
async fn other_type_under_name_of_lock_is_left_alone() {
    let (server, locks) = start().await;
    for command in OTHER_TYPES {
        server.cli(&on(command, "room"));
        assert_foreign(&server, &locks, "room", command[0]).await;
        server.cli(&["DEL", "room"]);
    }
    locks.acquire("room", &ONCE).await.expect("it is gone").release().await.expect("it answers");
}

#[tokio::test]
async fn other_type_under_name_of_fence_is_left_alone() {
    let (server, locks) = start().await;
    for command in OTHER_TYPES {
        server.cli(&on(command, FENCE));
        assert_foreign(&server, &locks, FENCE, command[0]).await;
        server.cli(&["DEL", FENCE]);
    }
    locks.acquire("room", &ONCE).await.expect("it is gone").release().await.expect("it answers");
}

/// Texts that are no fence, and a fence without a successor.
#[tokio::test]
async fn fence_that_is_no_number_is_left_alone() {
    let (server, locks) = start().await;
    let numbers = ["", "hello", "-1", "1.5", " 7", "7 ", "0x10", "1e3", "inf", "nan"];
    let beyond = ["9007199254740991", "9007199254740992", "10000000000000000", "1e300"];
    for fence in numbers.into_iter().chain(beyond) {
        server.cli(&["SET", FENCE, fence]);
        assert_foreign(&server, &locks, FENCE, fence).await;
    }
}

#[tokio::test]
async fn numbers_of_fence_keep_every_digit() {
    let (server, locks) = start().await;
    for fence in ["0", "1", "1700000000000000"] {
        server.cli(&["SET", FENCE, fence]);
        let guard = locks.acquire("room", &ONCE).await.expect("it is free");
        assert!(guard.token().as_i64() > fence.parse().expect("a number"));
        let seconds: i64 = server.cli(&["TIME"]).lines().next().expect("two").parse().expect("one");
        assert!(guard.token().as_i64() / 1_000_000 <= seconds, "it is ahead of the clock");
        assert_eq!(server.cli(&["GET", FENCE]), guard.token().to_string());
        guard.release().await.expect("it answers");
    }
    // Far in the future of any clock: the numbers go on from there one by one, as far as a double
    // counts.
    for fence in [8_888_888_888_888_888, 9_007_199_254_739_999, (1 << 53) - 3, (1 << 53) - 2_i64] {
        server.cli(&["SET", FENCE, &fence.to_string()]);
        let guard = locks.acquire("room", &ONCE).await.expect("it is free");
        assert_eq!(guard.token().as_i64(), fence + 1);
        assert_eq!(server.cli(&["GET", FENCE]), (fence + 1).to_string());
        guard.release().await.expect("it answers");
    }
}

#[tokio::test]
async fn record_without_expiry_is_held_and_said_so() {
    let (server, locks) = start().await;
    server.cli(&["SET", "room", "foreign"]);
    let patient = ONCE.timeout(Duration::from_millis(300));
    for options in [ONCE, patient] {
        let error = locks.acquire("room", &options).await.expect_err("it is held");
        assert!(matches!(error, LockError::Contended { no_expiry: true, .. }), "{error:?}");
        assert!(error.to_string().contains("has no expiry"), "{error}");
    }
    assert_eq!(server.cli(&["GET", "room"]), "foreign");
    assert_eq!(server.cli(&["PTTL", "room"]), "-1");
    server.cli(&["PEXPIRE", "room", "3600000"]);
    let error = locks.acquire("room", &patient).await.expect_err("it is held");
    assert!(matches!(error, LockError::Contended { no_expiry: false, .. }), "{error:?}");
    assert!(!error.to_string().contains("expiry"), "{error}");
}

/// A stranger deletes a lock that is held, and puts something else in its place.
#[tokio::test]
async fn replacement_of_held_lock_is_left_alone() {
    let (server, locks) = start().await;
    let strings: [&[&str]; 2] = [&["SET", "", "x"], &["SET", "", "x", "PX", "3600000"]];
    for command in OTHER_TYPES.into_iter().chain(strings) {
        for extend in [true, false] {
            let guard = locks.acquire("room", &ONCE).await.expect("it is free");
            server.cli(&["DEL", "room"]);
            server.cli(&on(command, "room"));
            let before = server.command(&["DUMP", "room"]);
            if extend {
                let lost = guard.extend(Duration::from_secs(60)).await;
                let gone = LostReason::Gone;
                assert!(matches!(lost, Err(LockError::Lost { reason, .. }) if reason == gone));
            }
            assert_eq!(guard.release().await.ok(), Some(ReleaseOutcome::AlreadyExpired));
            assert_eq!(server.command(&["DUMP", "room"]), before, "{command:?} was touched");
            server.cli(&["DEL", "room"]);
        }
    }
}
