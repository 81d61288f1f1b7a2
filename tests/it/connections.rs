//! Connections that hang, break while they are set up, or lead to a server that refuses.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use cache_lock::{
    BackendErrorKind, LockError, LockManager, LockOptions, LostReason, ReleaseOutcome,
};
use test_support::{Data, Direction, Fault, Front, Proxy, RedisServer, Verdict, wait_until};

use crate::common::{fleet::guarded, log::Log, waiters::wait_until_listed};

/// Longer than a test takes: no lease runs out.
const LONG: LockOptions =
    LockOptions::new().expire(Duration::from_secs(3600)).timeout(Duration::from_secs(50));

async fn connect(port: u16) -> LockManager {
    let url = format!("redis://127.0.0.1:{port}/");
    LockManager::connect(&url).await.expect("the server is there")
}

fn lazy(port: u16) -> LockManager {
    LockManager::builder().connect_lazy(&format!("redis://127.0.0.1:{port}/")).expect("a URL")
}

/// A connection that was opened while answers were lost stays mute, and the next one does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mute_connection_costs_caller_one_attempt() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    proxy.set(Direction::Replies, Fault::Swallow);
    let locks = lazy(proxy.port());
    let caller = tokio::spawn(async move {
        let options = LONG.timeout(Duration::from_millis(4500));
        locks.acquire("room", &options).await?.release().await
    });
    wait_until("a connection is mute", || proxy.commands() > 0);
    tokio::time::sleep(Duration::from_millis(300)).await;
    proxy.pass();
    let released = guarded(caller).await.expect("no panic").expect("the next connection works");
    assert_eq!(released, ReleaseOutcome::Released);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mute_connection_costs_holder_no_lease() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let locks = connect(proxy.port()).await;
    let guard = locks.acquire("room", &LONG.expire(Duration::from_secs(6))).await;
    let guard = guard.expect("it is free");
    let connections = proxy.accepted();
    wait_until("a second has passed", || guard.remaining() < Duration::from_millis(4800));
    proxy.set(Direction::Replies, Fault::Swallow);
    wait_until("the renewer opens its connection", || proxy.accepted() > connections);
    tokio::time::sleep(Duration::from_millis(300)).await;
    proxy.pass();
    wait_until("the lease is renewed", || {
        guard.is_lost() || guard.remaining() > Duration::from_secs(5)
    });
    assert!(!guard.is_lost());
    assert_eq!(guarded(guard.release()).await.ok(), Some(ReleaseOutcome::Released));
}

/// The holder's next renewal is twenty minutes away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restart_without_data_ends_leases_at_once() {
    let server = RedisServer::start();
    let (locks, other) = (connect(server.port()).await, connect(server.port()).await);
    let renewed = locks.acquire("room", &LONG).await.expect("it is free");
    let fixed = locks.acquire("hall", &LONG.renew(false)).await.expect("it is free");
    server.restart(Data::Lose);
    assert_eq!(guarded(renewed.lost()).await, LostReason::Gone);
    assert_eq!(guarded(fixed.lost()).await, LostReason::Gone);
    guarded(other.run("room", &LONG, async |_| ())).await.expect("it is free");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restart_with_data_ends_no_lease() {
    let server = RedisServer::start();
    let locks = connect(server.port()).await;
    let renewed = locks.acquire("room", &LONG).await.expect("it is free");
    let fixed = locks.acquire("hall", &LONG.renew(false)).await.expect("it is free");
    let left = || server.cli(&["PTTL", "hall"]).parse::<u64>().expect("a number");
    let before = left();
    server.restart(Data::Keep);
    wait_until("the leases are looked at", || server.calls("get") >= 2);
    assert!(left() <= before, "a lease that is not renewed is not made longer");
    for guard in [renewed, fixed] {
        assert!(!guard.is_lost());
        assert_eq!(guarded(guard.release()).await.ok(), Some(ReleaseOutcome::Released));
    }
}

/// Callers that all try for four seconds share the openings, and find the server once it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replica_costs_tens_of_connections() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let locks = connect(proxy.port()).await;
    server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    let callers = |timeout| -> Vec<_> {
        let caller = |key: usize| {
            let locks = locks.clone();
            let options = LONG.timeout(timeout);
            tokio::spawn(
                async move { locks.run(format!("room:{key}"), &options, async |_| ()).await },
            )
        };
        (0..100).map(caller).collect()
    };
    for caller in callers(Duration::from_secs(4)) {
        let error = guarded(caller).await.expect("no panic").expect_err("it takes no writes");
        let LockError::Backend { source, .. } = &error else { panic!("{error:?}") };
        assert_eq!(source.kind(), BackendErrorKind::ReadOnly, "{error}");
    }
    assert!(proxy.accepted() < 200, "{} connections", proxy.accepted());
    let before = proxy.accepted();
    let callers = callers(Duration::from_secs(50));
    wait_until("they ask", || proxy.accepted() > before + 2);
    server.cli(&["REPLICAOF", "NO", "ONE"]);
    for caller in callers {
        guarded(caller).await.expect("no panic").expect("it takes writes again");
    }
}

/// A release or an extension over a connection to a replica goes on over the next connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holder_behind_replica_finds_primary() {
    let server = Arc::new(RedisServer::start());
    let proxy = Arc::new(Proxy::start(server.port()));
    let builder = LockManager::builder().attempt_timeout(Duration::from_secs(50));
    let locks = builder.connect(&server.url_through(proxy.port())).await.expect("it is there");
    let guard = locks.acquire("room", &LONG).await.expect("it is free");
    // The server is a replica until another connection was tried.
    let fail_over = || {
        let (server, proxy, before) = (Arc::clone(&server), Arc::clone(&proxy), proxy.accepted());
        server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
        tokio::task::spawn_blocking(move || {
            wait_until("another connection is tried", || proxy.accepted() > before + 1);
            server.cli(&["REPLICAOF", "NO", "ONE"]);
        })
    };
    let promoted = fail_over();
    let extended = guarded(guard.extend(Duration::from_secs(7200))).await;
    extended.expect("the primary is there again");
    promoted.await.expect("no panic");
    let promoted = fail_over();
    let released = guarded(guard.release()).await;
    assert_eq!(released.expect("the primary is there again"), ReleaseOutcome::Released);
    promoted.await.expect("no panic");
}

/// A server that is busy or loading when the manager begins to listen does not make it deaf.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_is_busy_is_listened_to_later() {
    let log = Log::record();
    for (command, error) in [
        ("SUBSCRIBE", "BUSY Redis is busy running a script. You can only call SCRIPT KILL"),
        ("PUBLISH", "BUSY Redis is busy running a script. You can only call SCRIPT KILL"),
        ("SUBSCRIBE", "LOADING Redis is loading the dataset in memory"),
    ] {
        let server = RedisServer::start();
        let (busy, refused) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let front = Front::start(server.port(), {
            let (busy, refused) = (Arc::clone(&busy), Arc::clone(&refused));
            move |parts, _| {
                let judged = parts.first().is_some_and(|name| name == command);
                if judged && busy.load(Ordering::SeqCst) {
                    refused.fetch_add(1, Ordering::SeqCst);
                    return Verdict::Refuse(error);
                }
                Verdict::Pass
            }
        });
        let (holder, locks) = (connect(server.port()).await, connect(front.port()).await);
        let guard = holder.acquire("room", &LONG).await.expect("it is free");
        let waiter = tokio::spawn({
            let locks = locks.clone();
            async move { locks.run("room", &LONG, async |_| ()).await }
        });
        wait_until("it is refused", || refused.load(Ordering::SeqCst) > 2);
        busy.store(false, Ordering::SeqCst);
        wait_until_listed(&server, 1);
        guard.release().await.expect("the server answers");
        guarded(waiter).await.expect("no panic").expect("it is told");
        assert_eq!(log.count(front.port(), "no push notifications"), 0, "{command}: {error}");
    }
}

/// Some servers take no other commands on a connection that is subscribed, as in RESP2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pushes_have_connection_of_their_own_where_they_must() {
    let log = Log::record();
    let server = RedisServer::start();
    let front = Front::start(server.port(), |parts, subscribed| match parts.first() {
        Some(name) if subscribed && name != "SUBSCRIBE" => Verdict::Refuse(
            "ERR Can't execute 'publish': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT are \
             allowed in this context",
        ),
        _ => Verdict::Pass,
    });
    let (holder, locks) = (connect(front.port()).await, connect(front.port()).await);
    let lease = LONG.expire(Duration::from_secs(2));
    let guard = holder.acquire("room", &lease).await.expect("it is free");
    let waiter = tokio::spawn({
        let locks = locks.clone();
        async move { locks.run("room", &LONG, async |_| ()).await }
    });
    wait_until_listed(&server, 1);
    let renewals = server.calls("pexpire");
    wait_until("it is renewed", || guard.is_lost() || server.calls("pexpire") > renewals + 1);
    assert!(!guard.is_lost());
    assert_eq!(guarded(guard.release()).await.ok(), Some(ReleaseOutcome::Released));
    guarded(waiter).await.expect("no panic").expect("it is told");
    assert_eq!(log.count(front.port(), "a connection of their own"), 2, "one for each manager");
    assert_eq!(log.count(front.port(), "no push notifications"), 0);
}

/// The connection breaks at SUBSCRIBE: that says nothing about the user's rights.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_that_breaks_while_it_is_set_up_is_opened_again() {
    let log = Log::record();
    let server = RedisServer::start();
    let broken = Arc::new(AtomicUsize::new(0));
    let front = Front::start(server.port(), {
        let broken = Arc::clone(&broken);
        move |parts, _| match parts.first() {
            Some(name) if name == "SUBSCRIBE" && broken.fetch_add(1, Ordering::SeqCst) < 2 => {
                Verdict::Close("")
            }
            _ => Verdict::Pass,
        }
    });
    let (holder, locks) = (connect(server.port()).await, connect(front.port()).await);
    let guard = holder.acquire("room", &LONG).await.expect("it is free");
    let waiter = tokio::spawn(async move { locks.run("room", &LONG, async |_| ()).await });
    wait_until_listed(&server, 1);
    guard.release().await.expect("the server answers");
    guarded(waiter).await.expect("no panic").expect("it is told");
    assert!(broken.load(Ordering::SeqCst) > 2);
    assert_eq!(log.count(front.port(), "no push notifications"), 0);
}

async fn refusal(port: u16) -> (String, BackendErrorKind, bool) {
    let error = LockManager::connect(&format!("redis://127.0.0.1:{port}/")).await;
    let error = error.expect_err("no connection is taken");
    let LockError::Connect { source, .. } = &error else { panic!("{error:?}") };
    (error.to_string(), source.kind(), error.is_retryable())
}

/// A server that closes a connection says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_server_says_before_it_closes_is_in_error() {
    let server = RedisServer::start();
    for (says, what, kind, retryable) in [
        (
            "-ERR max number of clients reached\r\n",
            "max number",
            BackendErrorKind::Unavailable,
            true,
        ),
        (
            "-DENIED Redis is running in protected mode because no password is set. Advice.\r\n",
            "protected mode",
            BackendErrorKind::Denied,
            false,
        ),
    ] {
        let front = Front::start(server.port(), move |parts, _| match parts.is_empty() {
            true => Verdict::Close(says),
            false => Verdict::Pass,
        });
        // Which of the two ends of the connection is first differs.
        for _ in 0..20 {
            let (message, found, retried) = refusal(front.port()).await;
            assert!(message.contains(what) && !message.contains("Advice"), "{message}");
            assert_eq!((found, retried), (kind, retryable), "{message}");
        }
    }
}

/// A proxy that does not know HELLO says so in its own words, or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_hello_older_protocol_is_spoken() {
    for verdict in [
        Verdict::Refuse("ERR unsupported command `hello`"),
        Verdict::Refuse("ERR invalid request"),
        Verdict::Refuse("ERR command 'hello' is not allowed"),
        Verdict::Refuse("NOPERM this user has no permissions to run the 'hello' command"),
        Verdict::Close(""),
    ] {
        let server = RedisServer::start();
        let front = Front::start(server.port(), {
            let verdict = verdict.clone();
            move |parts, _| match parts.first() {
                Some(name) if name == "HELLO" => verdict.clone(),
                _ => Verdict::Pass,
            }
        });
        let locks = connect(front.port()).await;
        let (holder, waiter) = (locks.acquire("room", &LONG).await, locks.clone());
        let waiter = tokio::spawn(async move { waiter.run("room", &LONG, async |_| ()).await });
        let released = guarded(holder.expect("it is free").release()).await;
        assert_eq!(released.ok(), Some(ReleaseOutcome::Released), "{verdict:?}");
        guarded(waiter).await.expect("no panic").expect("it gets its turn");
    }
}

/// A proxy that closes a connection at each command that it does not know.
fn closes_at_unknown(parts: &[String], scripts: bool) -> Verdict {
    match parts.first().map(String::as_str) {
        Some("EVAL" | "EVALSHA") if scripts => Verdict::Pass,
        Some(_) => Verdict::Close(""),
        None => Verdict::Pass,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxy_that_runs_only_scripts_is_enough() {
    let log = Log::record();
    let server = RedisServer::start();
    let front = Front::start(server.port(), |parts, _| closes_at_unknown(parts, true));
    let locks = connect(front.port()).await;
    let waiter = locks.clone();
    let guard = guarded(locks.acquire("room", &LONG)).await.expect("it is free");
    let waiter = tokio::spawn(async move { waiter.run("room", &LONG, async |_| ()).await });
    assert_eq!(guarded(guard.release()).await.ok(), Some(ReleaseOutcome::Released));
    guarded(waiter).await.expect("no panic").expect("it gets its turn");
    assert_eq!(log.count(front.port(), "no push notifications"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxy_that_closes_at_scripts_without_keys_is_enough() {
    let server = RedisServer::start();
    let front = Front::start(server.port(), |parts, _| match parts.first().map(String::as_str) {
        Some("EVAL") if parts[2] == "0" => Verdict::Close(""),
        _ => Verdict::Pass,
    });
    let locks = lazy(front.port());
    let waiter = locks.clone();
    let guard = guarded(locks.acquire("room", &LONG)).await.expect("it is free");
    let waiter = tokio::spawn(async move { waiter.run("room", &LONG, async |_| ()).await });
    let released = guarded(guard.release()).await.expect("it is released");
    assert_eq!(released, ReleaseOutcome::Released);
    guarded(waiter).await.expect("no panic").expect("it gets its turn");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxy_without_scripts_over_several_keys_is_refused() {
    let server = RedisServer::start();
    let closes = Front::start(server.port(), |parts, _| closes_at_unknown(parts, false));
    let refuses = Front::start(server.port(), |parts, _| match parts.first().map(String::as_str) {
        Some("HELLO") => Verdict::Refuse("ERR unsupported command `hello`"),
        Some("EVAL" | "EVALSHA") => Verdict::Refuse("ERR scripts take one key at most"),
        _ => Verdict::Pass,
    });
    for front in [closes, refuses] {
        let (message, kind, retryable) = refusal(front.port()).await;
        assert!(message.contains("runs no scripts over several keys"), "{message}");
        assert_eq!((kind, retryable), (BackendErrorKind::Configuration, false), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_server_says_so() {
    let server = RedisServer::builder().config("maxclients", "1").start();
    let _only = loop {
        let mut client = TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
        let mut answer = [0; 5];
        // It closes those that it does not take.
        if client.write_all(b"PING\r\n").and_then(|()| client.read_exact(&mut answer)).is_ok()
            && answer == *b"+PONG"
        {
            break client;
        }
    };
    for _ in 0..5 {
        let (message, kind, retryable) = refusal(server.port()).await;
        assert!(message.contains("max number of clients reached"), "{message}");
        assert_eq!((kind, retryable), (BackendErrorKind::Unavailable, true), "{message}");
    }
}
