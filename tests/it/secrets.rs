//! A password appears nowhere: not in errors, not in debug output, not in logs.

use std::{error::Error, time::Duration};

use cache_lock::{LockError, LockKey, LockManager, LockOptions};
use test_support::{Data, RedisServer};

use crate::common::log::{Log, Record};

const ONCE: LockOptions = LockOptions::new().timeout(Duration::ZERO);

/// A password, and how it stands in a URL. Part of either must be found nowhere.
const PASSWORD: &str = "hunter2/Tr0ub4dor";
const IN_URL: &str = "hunter2%2FTr0ub4dor";

#[track_caller]
fn assert_secret(text: &str) {
    assert!(!text.contains("hunter2") && !text.contains("Tr0ub4dor"), "{text}");
}

/// All that an error tells, with its sources.
#[track_caller]
fn assert_error_secret(error: &LockError) {
    assert_secret(&format!("{error} {error:?} {error:#?}"));
    let mut source = error.source();
    while let Some(error) = source {
        assert_secret(&format!("{error} {error:?}"));
        source = error.source();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_appear_nowhere() {
    let log = Log::record();
    let key = LockKey::new("secrets");
    let server = RedisServer::builder().user("app", PASSWORD, "~* +@all").start();
    let address = format!("127.0.0.1:{}", server.port());
    let url = format!("redis://app:{IN_URL}@{address}/");

    let locks = LockManager::connect(&url).await.expect("the password is right");
    assert_secret(&format!("{locks:?} {:?}", LockManager::builder()));
    let guard = locks.acquire(key.clone(), &ONCE).await.expect("it is free");
    assert_secret(&format!("{guard:?}"));
    server.cli(&["ACL", "SETUSER", "app", "-evalsha"]);
    assert_error_secret(&locks.acquire("hall", &ONCE).await.expect_err("it is forbidden"));
    server.cli(&["ACL", "DELUSER", "app"]);
    assert_error_secret(&locks.acquire("hall", &ONCE).await.expect_err("there is no such user"));
    assert_error_secret(&LockManager::connect(&url).await.expect_err("there is no such user"));
    server.kill();
    assert_error_secret(&locks.acquire("hall", &ONCE).await.expect_err("the server is dead"));
    assert_error_secret(&guard.release().await.expect_err("the server is dead"));
    assert_error_secret(&LockManager::connect(&url).await.expect_err("the server is dead"));
    server.restart(Data::Lose);

    for url in [
        format!("redis://app:{PASSWORD}@{address}/"),
        format!("redis://app:{IN_URL}@{address}/x"),
        format!("redis://app:{IN_URL}@[::1/"),
        format!("redis:app:{IN_URL}@{address}"),
        format!("http://app:{IN_URL}@{address}"),
        format!("redis://app:{IN_URL}{address}"),
        format!("app:{IN_URL}@{address}"),
        format!("unix:///no/socket?pass={IN_URL}"),
        format!("unix:///no/socket?pass={IN_URL}&db=x"),
        format!("redis://{address}/?password={IN_URL}&protocol=x"),
    ] {
        let connecting = tokio::time::timeout(Duration::from_secs(60), LockManager::connect(&url));
        let error = connecting.await.expect("within 5 s").expect_err(&url);
        assert_error_secret(&error);
    }

    let is_failure = |record: &Record| record.message().contains("not released");
    assert!(log.about(&key).iter().any(is_failure), "it is logged");
    for record in log.matching(|_| true) {
        assert_secret(&format!("{record:?}"));
    }
}
