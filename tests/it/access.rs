//! Ways to a server: users, passwords, sockets, databases, protocols; and the errors of ways that do
//! not lead there.

use std::time::Duration;

use cache_lock::{BackendErrorKind, LockError, LockKey, LockManager, LockOptions, ReleaseOutcome};
use test_support::{Data, Front, RedisServer, Verdict, wait_until};

use crate::common::{chain::says_nothing_twice, log::Log};

const ONCE: LockOptions = LockOptions::new().timeout(Duration::ZERO);

/// All that a user of locks needs, on a server of version 7.
const RULES: &str = "~room:* +evalsha +eval +set +get +pttl +pexpire +del +time";

fn key() -> LockKey {
    LockKey::new("room").part(42)
}

/// Acquires, is refused, extends and releases.
async fn cycle(locks: &LockManager) -> Result<(), LockError> {
    let guard = locks.acquire(key(), &ONCE).await?;
    if locks.try_acquire(key(), &ONCE).await?.is_some() {
        panic!("two hold it");
    }
    guard.extend(Duration::from_secs(60)).await?;
    assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    locks.run(key(), &ONCE, async |_| ()).await
}

async fn connect_error(url: &str) -> (String, BackendErrorKind) {
    let error = LockManager::connect(url).await.expect_err("it cannot connect");
    let LockError::Connect { server, source, .. } = &error else { panic!("{error:?}") };
    assert!(error.to_string().contains(&**server), "{error}");
    says_nothing_twice(&error);
    (error.to_string(), source.kind())
}

#[tokio::test]
async fn user_with_least_rights_locks() {
    let server = RedisServer::builder().user("app", "word", RULES).start();
    let locks = LockManager::connect(&server.url_of_user("app")).await.expect("the user is let in");
    cycle(&locks).await.expect("the rules suffice");
    locks.ping().await.expect("and the server answers");
    server.cli(&["SCRIPT", "FLUSH"]);
    cycle(&locks).await.expect("the rules suffice without known scripts");
    assert_eq!(server.cli(&["KEYS", "*"]), "room:{room:42}:fence");
}

/// Each of the rules is needed: without it something fails, and says why.
#[tokio::test(flavor = "multi_thread")]
async fn each_right_is_needed() {
    for rule in RULES.split(' ') {
        let others = RULES.split(' ').filter(|&other| other != rule);
        let rules = others.collect::<Vec<_>>().join(" ");
        let server = RedisServer::builder().user("app", "word", &rules).start();
        let locks = LockManager::connect(&server.url_of_user("app")).await;
        let locks = locks.expect("the user is let in");
        let error = cycle(&locks).await.expect_err(rule);
        let LockError::Backend { source, .. } = &error else { panic!("{rule}: {error:?}") };
        assert_eq!(source.kind(), BackendErrorKind::Denied, "{rule}: {error}");
        assert!(!error.is_retryable(), "{rule}: {error}");
        assert!(error.to_string().contains("does not allow it"), "{rule}: {error}");
        says_nothing_twice(&error);
        wait_until("nothing is left", || server.cli(&["EXISTS", "room:42"]) == "0");
    }
}

/// A release reads the record, so a user without GET gets no lock.
#[tokio::test]
async fn user_without_get_takes_no_lock() {
    let server = RedisServer::builder().user("app", "word", &RULES.replace(" +get", "")).start();
    let locks = LockManager::connect(&server.url_of_user("app")).await.expect("the user is let in");
    let error = locks.acquire(key(), &ONCE).await.expect_err("it is forbidden");
    let LockError::Backend { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), BackendErrorKind::Denied, "{error}");
    assert_eq!(server.cli(&["EXISTS", "room:42"]), "0");
    server.cli(&["ACL", "SETUSER", "app", "+get"]);
    cycle(&locks).await.expect("the rules suffice, over the same connection");
}

#[tokio::test]
async fn wrong_password_is_denied() {
    let server = RedisServer::builder().password("right").user("app", "hunter2", RULES).start();
    LockManager::connect(&server.url()).await.expect("the password is right");
    let port = server.port();
    for user in ["", ":wr0ng@", "app:wr0ng@", "stranger:hunter2@"] {
        let (message, kind) = connect_error(&format!("redis://{user}127.0.0.1:{port}/")).await;
        assert_eq!(kind, BackendErrorKind::Denied, "{message}");
        assert!(!message.contains("wr0ng") && !message.contains("hunter2"), "{message}");
    }
    let lazy = LockManager::builder().connect_lazy(&format!("redis://:wr0ng@127.0.0.1:{port}/"));
    let error = lazy.expect("the URL is one").acquire(key(), &LockOptions::new()).await;
    let error = error.expect_err("the password is wrong");
    assert!(
        matches!(&error, LockError::Backend { source, .. }
        if source.kind() == BackendErrorKind::Denied),
        "{error:?}"
    );
}

/// With the colon forgotten a password stands where a user does.
#[tokio::test]
async fn password_without_its_colon_is_not_shown() {
    let log = Log::record();
    let server = RedisServer::builder().password("hunter2").start();
    let without_colon = |user: &str| format!("redis://{user}@127.0.0.1:{}/", server.port());
    for url in [without_colon("hunter2"), without_colon("hunter2") + "?protocol=resp2"] {
        let locks = LockManager::builder().connect_lazy(&url).expect("the URL is one");
        let error = locks.acquire(key(), &ONCE).await.expect_err("it is not let in");
        let shown = format!("{error} {error:?} {locks:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(error.to_string().contains("`redis://:PASSWORD@host`"), "{error}");
        assert!(error.to_string().contains("asks for a password"), "{error}");
        let LockError::Backend { source, .. } = &error else { panic!("{error:?}") };
        assert_eq!(source.kind(), BackendErrorKind::Denied, "{error}");
        says_nothing_twice(&error);
    }
    let (message, kind) = connect_error(&without_colon("hunter2")).await;
    assert!(!message.contains("hunter2"), "{message}");
    assert_eq!(kind, BackendErrorKind::Denied, "{message}");
    let shown = log.matching(|record| format!("{record:?}").contains("hunter2"));
    assert!(shown.is_empty(), "{shown:?}");
    LockManager::connect(&without_colon(":hunter2")).await.expect("with the colon it is let in");
}

#[tokio::test]
async fn unix_socket_serves_locks() {
    let server = RedisServer::builder().password("right").start();
    let url = server.unix_url();
    for url in [url.replace("redis+unix", "unix"), url] {
        let locks = LockManager::connect(&url).await.expect("the server listens there");
        cycle(&locks).await.expect("it works");
        let debug = format!("{locks:?}");
        assert!(debug.contains("unix://") && !debug.contains("right"), "{debug}");
    }
}

#[tokio::test]
async fn locks_are_kept_in_database_of_url() {
    let server = RedisServer::start();
    let locks = LockManager::connect(&format!("{}3", server.url())).await.expect("there is one");
    let guard = locks.acquire(key(), &ONCE).await.expect("it is free");
    let there = "redis.call('SELECT', 3) return redis.call('EXISTS', KEYS[1])";
    assert_eq!(server.cli(&["EVAL", there, "1", "room:42"]), "1");
    assert_eq!(server.cli(&["EXISTS", "room:42"]), "0");
    guard.release().await.expect("it answers");
    let (message, kind) = connect_error(&format!("{}99", server.url())).await;
    assert!(message.contains("99") && message.contains("does not have the database"), "{message}");
    assert_eq!(kind, BackendErrorKind::Configuration, "{message}");
}

#[tokio::test]
async fn database_by_number_needs_right_to_select() {
    let server = RedisServer::builder()
        .user("app", "word", &format!("{RULES} +select"))
        .user("other", "word", RULES)
        .start();
    let url = |user| format!("{}3", server.url_of_user(user));
    let locks = LockManager::connect(&url("app")).await.expect("the user is let in");
    cycle(&locks).await.expect("the rules suffice");
    let (message, kind) = connect_error(&url("other")).await;
    assert!(message.contains("'select'") && message.contains("`+select`"), "{message}");
    assert_eq!(kind, BackendErrorKind::Denied, "{message}");
}

#[tokio::test]
async fn server_without_hello_serves_locks() {
    let builder = || RedisServer::builder().config("rename-command", "HELLO \"\"");
    let server = builder().start();
    assert!(server.command(&["HELLO", "3"]).is_err());
    let locks = LockManager::connect(&server.url()).await.expect("it falls back");
    cycle(&locks).await.expect("it works");
    server.restart(Data::Lose);
    locks.run(key(), &LockOptions::new(), async |_| ()).await.expect("it falls back again");

    let server = builder().user("app", "word", RULES).start();
    let locks = LockManager::connect(&server.url_of_user("app")).await.expect("it falls back");
    cycle(&locks).await.expect("it works");
}

/// Some hosted servers rename it.
#[tokio::test]
async fn server_without_evalsha_serves_locks() {
    let server = RedisServer::builder().config("rename-command", "EVALSHA \"\"").start();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    cycle(&locks).await.expect("scripts are sent in full");
    assert!(server.calls("eval") >= 5);
    assert_eq!(locks.try_acquire(key(), &ONCE).await.expect("it answers").map(drop), Some(()));
}

/// The server repeats what it does not know, and that is a script.
#[tokio::test]
async fn server_without_scripts_is_named_without_their_text() {
    let log = Log::record();
    let server = RedisServer::builder()
        .config("rename-command", "EVALSHA \"\"")
        .config("rename-command", "EVAL \"\"")
        .start();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    let error = locks.acquire(key(), &ONCE).await.expect_err("it runs no scripts");
    let shown = format!("{error} {error:?}");
    // Each version has quotation marks of its own.
    assert!(shown.contains("unknown command") && shown.contains("EVAL"), "{shown}");
    says_nothing_twice(&error);
    let is_lua = |text: &str| text.contains("args beginning with") || text.contains("redis.call");
    assert!(!is_lua(&shown), "{shown}");
    let shown = log.matching(|record| is_lua(&format!("{record:?}")));
    assert!(shown.is_empty(), "{shown:?}");
}

#[tokio::test]
async fn invalid_url_is_configuration_error() {
    for url in ["", "127.0.0.1:6379", "http://127.0.0.1/", "redis://127.0.0.1/x", "redis://"] {
        let (message, kind) = connect_error(url).await;
        assert_eq!(kind, BackendErrorKind::Configuration, "{message}");
        assert!(message.contains("expected `redis://"), "{message}");
        assert!(LockManager::builder().connect_lazy(url).is_err());
    }
    #[cfg(not(feature = "tls"))]
    {
        let (message, kind) = connect_error("rediss://127.0.0.1/").await;
        assert_eq!(kind, BackendErrorKind::Configuration, "{message}");
        assert!(message.contains("feature `tls`"), "{message}");
    }
}

#[tokio::test]
async fn missing_server_is_unreachable() {
    let server = RedisServer::start();
    server.kill();
    let (message, kind) = connect_error(&server.url()).await;
    assert_eq!(kind, BackendErrorKind::Unreachable, "{message}");
    assert!(message.contains(&server.port().to_string()), "{message}");
    let (message, kind) = connect_error("redis://no-such-host.invalid/").await;
    assert_eq!(kind, BackendErrorKind::Unreachable, "{message}");
    let (message, kind) = connect_error(&server.unix_url()).await;
    assert_eq!(kind, BackendErrorKind::Unreachable, "{message}");
}

#[tokio::test]
async fn mute_server_is_connect_timeout() {
    let server = RedisServer::start();
    server.stop();
    let url = server.url();
    let connecting = connect_error(&url);
    let guard = Duration::from_secs(60);
    let (message, kind) = tokio::time::timeout(guard, connecting).await.expect("within 5 s");
    assert_eq!(kind, BackendErrorKind::Timeout, "{message}");
}

#[tokio::test]
async fn program_may_start_before_its_server() {
    let server = RedisServer::start();
    server.kill();
    let locks = LockManager::builder().connect_lazy(&server.url()).expect("the URL is one");
    assert_eq!(locks.in_hand().connections, 0);
    locks.acquire(key(), &ONCE).await.expect_err("there is no server");
    server.restart(Data::Lose);
    cycle(&locks).await.expect("there is one now");
}

/// Not being allowed to look is not the same as seeing that the lock is gone.
#[tokio::test(flavor = "multi_thread")]
async fn withdrawn_right_loses_no_lock() {
    let server = RedisServer::builder().user("app", "word", RULES).start();
    let locks = LockManager::connect(&server.url_of_user("app")).await.expect("the user is let in");
    let guard = locks.acquire(key(), &ONCE).await.expect("it is free");
    server.cli(&["ACL", "SETUSER", "app", "-get"]);
    let denied = |error: LockError| {
        let LockError::Backend { source, .. } = &error else { panic!("{error:?}") };
        assert_eq!(source.kind(), BackendErrorKind::Denied, "{error}");
    };
    denied(guard.extend(Duration::from_secs(60)).await.expect_err("it is forbidden"));
    assert!(!guard.is_lost());
    denied(guard.release().await.expect_err("it is forbidden"));
    assert_eq!(server.cli(&["EXISTS", "room:42"]), "1");
    server.cli(&["ACL", "SETUSER", "app", "+get"]);
    wait_until("it is released in the background", || server.cli(&["EXISTS", "room:42"]) == "0");
}

/// Has a manager connect and acquire where scripts may not call TIME.
async fn without_time(server: &RedisServer, url: &str) {
    let log = Log::record();
    let port = url.trim_end_matches('/').rsplit_once(':').expect("a port").1;
    let port = port.parse().expect("a number");
    let warnings = || log.count(port, "scripts may not call TIME");
    let locks = LockManager::connect(url).await.expect("the user is let in");
    assert_eq!(warnings(), 1, "before anything is acquired");
    for _ in 0..2 {
        let options = LockOptions::new().timeout(Duration::from_secs(30));
        let error = locks.acquire(key(), &options).await.expect_err("there is no number");
        let LockError::Backend { source, .. } = &error else { panic!("{error:?}") };
        assert_eq!(source.kind(), BackendErrorKind::Denied, "{error}");
        assert!(!error.is_retryable(), "{error}");
        let said = error.to_string();
        assert!(said.contains("scripts may not call TIME") && said.contains("`+time`"), "{said}");
        assert_eq!(server.cli(&["EXISTS", "room:42"]), "0", "nothing is left behind");
    }
    assert_eq!(warnings(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_without_right_to_time_is_denied() {
    let rules = RULES.replace(" +time", "");
    let denied = RedisServer::builder().user("app", "word", &rules).start();
    without_time(&denied, &denied.url_of_user("app")).await;
    let unknown = RedisServer::builder().config("rename-command", "TIME \"\"").start();
    without_time(&unknown, &unknown.url()).await;
}

/// Hosted servers refuse it in words of their own.
#[tokio::test(flavor = "multi_thread")]
async fn lock_without_time_on_hosted_server_is_denied() {
    for words in [
        "ERR This Redis command is not allowed from script",
        "This Redis command is not allowed from scripts",
        "ERR TIME is switched off here",
    ] {
        let server = RedisServer::start();
        let refused = format!("{{err = '{words}'}}");
        let front =
            Front::start(server.port(), move |parts, _| match parts.first().map(String::as_str) {
                Some("EVAL") => {
                    let mut parts = parts.to_vec();
                    parts[1] = parts[1].replace("redis.pcall('TIME')", &refused);
                    Verdict::Instead(parts)
                }
                Some("EVALSHA") => Verdict::Refuse("NOSCRIPT No matching script."),
                _ => Verdict::Pass,
            });
        without_time(&server, &server.url_through(front.port())).await;
    }
}
