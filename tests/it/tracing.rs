//! The log: where the time goes, and which faults an operator has to know.

use std::time::Duration;

use cache_lock::{LockKey, LockManager, LockOptions, LostReason};
use test_support::{RedisServer, wait_until};
use tracing::Level;

use crate::common::log::{Log, Record};

const ONCE: LockOptions = LockOptions::new().timeout(Duration::ZERO);

/// Records, and a server whose locks are those of one test.
async fn start(test: &str) -> (Log, RedisServer, LockManager, LockKey) {
    let log = Log::record();
    let server = RedisServer::start();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    (log, server, locks, LockKey::new("logged").part(test))
}

/// The spans of this name about a lock.
fn spans(log: &Log, name: &str, key: &LockKey) -> Vec<Record> {
    log.about(key).into_iter().filter(|record| record.span == Some(name)).collect()
}

/// The first event about a lock with this message.
#[track_caller]
fn event(log: &Log, message: &str, key: &LockKey) -> Record {
    let events = log.about(key).into_iter().filter(|record| record.span.is_none());
    let mut matching = events.filter(|record| record.message().starts_with(message));
    matching.next().unwrap_or_else(|| panic!("{message:?} was not logged: {:#?}", log.about(key)))
}

#[tokio::test(flavor = "multi_thread")]
async fn healthy_lock_says_nothing_above_debug() {
    let (log, _server, locks, key) = start("healthy").await;
    let inside = async |_: &_| tracing::info!(key = "the body of healthy", "at work");
    locks.run(key.clone(), &ONCE, inside).await.expect("it is free");
    drop(locks.acquire(key.clone(), &ONCE).await.expect("it is free"));
    wait_until("it is released", || locks.in_hand().tasks == 0);
    let guard = locks.acquire(key.clone(), &ONCE).await.expect("it is free");
    guard.extend(Duration::from_secs(60)).await.expect("it is held");
    locks.acquire(key.clone(), &ONCE).await.expect_err("it is held");
    guard.release().await.expect("the server runs");

    assert!(
        log.about(&key).iter().all(|record| record.level == Level::DEBUG),
        "{:#?}",
        log.about(&key)
    );
    for message in ["lock acquired", "lock contended", "lock released"] {
        assert!(!event(&log, message, &key).field("waited").is_empty(), "{message}");
    }
    assert_eq!(event(&log, "lock acquired", &key).within, ["cache_lock.acquire"]);
    assert_eq!(event(&log, "lock released", &key).within, ["cache_lock.release"]);
    event(&log, "lock released in the background", &key);

    let acquired = spans(&log, "cache_lock.acquire", &key);
    let outcomes: Vec<_> = acquired.iter().map(|span| span.field("outcome")).collect();
    assert_eq!(outcomes, [r#""acquired""#, r#""acquired""#, r#""acquired""#, r#""contended""#]);
    let released = spans(&log, "cache_lock.release", &key);
    let outcomes: Vec<_> = released.iter().map(|span| span.field("outcome")).collect();
    assert_eq!(outcomes, [r#""released""#, r#""released""#]);
    for span in acquired.iter().chain(&released) {
        assert!(!span.field("waited").is_empty(), "{span:?}");
    }

    let body = log.matching(|record| record.field("key").contains("body of healthy"));
    assert_eq!(body.len(), 1, "{body:#?}");
    assert_eq!(body[0].within, [""; 0], "no span of ours covers the body");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_acquisition_has_no_outcome() {
    let (log, _server, locks, key) = start("cancelled").await;
    let _guard = locks.acquire(key.clone(), &ONCE).await.expect("it is free");
    let patient = LockOptions::new().timeout(Duration::from_secs(60));
    let waiting = locks.acquire(key.clone(), &patient);
    assert!(tokio::time::timeout(Duration::from_millis(50), waiting).await.is_err());
    assert_eq!(spans(&log, "cache_lock.acquire", &key)[1].field("outcome"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_lock_is_warning() {
    let (log, server, locks, key) = start("lost").await;
    let guard = locks.acquire(key.clone(), &ONCE).await.expect("it is free");
    server.cli(&["DEL", key.as_str()]);
    guard.extend(Duration::from_secs(60)).await.expect_err("it is gone");
    let lost = event(&log, "lock lost: ", &key);
    assert_eq!(lost.level, Level::WARN);
    assert_eq!(lost.field("fence"), guard.token().to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_server_is_warning() {
    let (log, server, locks, key) = start("dead").await;
    let options = ONCE.expire(Duration::from_secs(1));
    let first = locks.acquire(key.clone(), &options).await.expect("it is free");
    let second = key.clone().part(2);
    let second_guard = locks.acquire(second.clone(), &options).await.expect("it is free");
    server.kill();
    let third = key.clone().part(3);
    locks.acquire(third.clone(), &options).await.expect_err("the server is dead");
    let refused = event(&log, "lock not acquired", &third);
    assert_eq!(refused.level, Level::DEBUG, "the caller has the error");
    assert!(!refused.field("error").is_empty() && !refused.field("waited").is_empty());
    assert_eq!(spans(&log, "cache_lock.acquire", &third)[0].field("outcome"), r#""failed""#);

    second_guard.release().await.expect_err("the server is dead");
    let unreleased = event(&log, "lock not released yet", &second);
    assert_eq!(unreleased.level, Level::DEBUG, "the caller has the error");
    assert_eq!(unreleased.within, ["cache_lock.release"]);
    wait_until("the next try fails", || {
        let message = "lock not released yet; trying again";
        log.about(&second).iter().any(|record| record.message() == message)
    });
    assert_eq!(event(&log, "lock not released yet; trying again", &second).level, Level::WARN);
    assert_eq!(spans(&log, "cache_lock.release", &second)[0].field("outcome"), r#""failed""#);

    first.lost().await;
    // The holder is told first, and the log then.
    wait_until("it is logged", || {
        log.about(&key).iter().any(|record| record.message().starts_with("lock lost: "))
    });
    assert_eq!(event(&log, "lock not renewed yet", &key).level, Level::WARN);
    assert_eq!(event(&log, "lock lost: ", &key).level, Level::WARN);
    // A fault that lasts is told once, and not with every try.
    let renewals =
        log.about(&key).into_iter().filter(|record| record.message().contains("renewed yet"));
    assert_eq!(renewals.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_warns_once_of_locks_that_it_ends() {
    let (log, _server, locks, key) = start("shutdown").await;
    let keys: Vec<_> = (0..20).map(|number| key.clone().part(number)).collect();
    let mut guards = Vec::new();
    for key in &keys {
        guards.push(locks.acquire(key.clone(), &ONCE).await.expect("it is free"));
    }
    // The holders let go when they hear of the loss.
    let released = async {
        for guard in guards {
            assert_eq!(guard.lost().await, LostReason::ShutDown);
        }
    };
    tokio::join!(locks.shutdown(), released);

    for key in &keys {
        assert_eq!(event(&log, "lock lost: ", key).level, Level::DEBUG);
        assert!(
            log.about(key).iter().all(|record| record.level == Level::DEBUG),
            "{:#?}",
            log.about(key)
        );
    }
    // The managers of other tests are shut down meanwhile, each on a thread of its own.
    let thread = event(&log, "lock lost: ", &key.part(0)).thread;
    let shut_down = |record: &Record| record.message().starts_with("locks lost: ");
    let told = log.matching(|record| record.thread == thread && shut_down(record));
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!((told[0].level, told[0].field("lost")), (Level::WARN, "20"));
}
