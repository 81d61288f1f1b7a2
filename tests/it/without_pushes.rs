//! Waiting where there are no pushes: the server is asked again and again.

use std::{thread, time::Duration};

use cache_lock::{LockError, LockManager, LockManagerBuilder, LockOptions};
use test_support::{Proxy, RedisServer, wait_until};
use tokio::task::JoinHandle;

use crate::common::{
    cases::at_once,
    fleet::guarded,
    log::Log,
    waiters::{listed, wait_until_clean, wait_until_idle, wait_until_listed},
};

/// Longer than a test takes: no lease expires.
const LONG: LockOptions =
    LockOptions::new().expire(Duration::from_secs(3600)).timeout(Duration::from_secs(50));

/// The rights of a user without channels, on a server of version 7.
const RULES: &str = "~room* +evalsha +eval +set +get +pttl +pexpire +del +time \
                     +zcard +zadd +zscore +zrange +zrem";

fn limited(more: &str) -> RedisServer {
    RedisServer::builder().user("app", "word", &format!("resetchannels {RULES} {more}")).start()
}

fn builder() -> LockManagerBuilder {
    LockManager::builder().attempt_timeout(Duration::from_millis(300))
}

/// Its requests may take longer than a core is blocked on a busy machine.
async fn patient(url: &str) -> LockManager {
    let builder = LockManager::builder().attempt_timeout(Duration::from_secs(10));
    builder.connect(url).await.expect("the user is let in")
}

async fn manager(url: &str) -> LockManager {
    builder().connect(url).await.expect("the user is let in")
}

/// How often it was said that a server gives no pushes.
/// The warnings about the server on a port that say that there are no pushes.
fn warnings(log: &Log, port: u16) -> usize {
    log.count(port, "no push notifications")
}

fn sections(locks: &LockManager, callers: usize, each: usize) -> Vec<JoinHandle<()>> {
    (0..callers)
        .map(|_| {
            let locks = locks.clone();
            tokio::spawn(async move {
                for _ in 0..each {
                    let guard = locks.acquire("room", &LONG).await.expect("it gets its turn");
                    guard.release().await.expect("the server answers");
                }
            })
        })
        .collect()
}

async fn all(callers: Vec<JoinHandle<()>>) {
    for caller in callers {
        guarded(caller).await.expect("no panic");
    }
}

/// The lock goes back and forth between two managers, with callers of both waiting.
async fn takes_turns(server: &RedisServer, url: &str) {
    let log = Log::record();
    let managers = [manager(url).await, manager(url).await];
    for round in 0..4 {
        let [holder, waiter] = [&managers[round % 2], &managers[(round + 1) % 2]];
        let guard = holder.acquire("room", &LONG).await.expect("it is free");
        let callers = sections(waiter, 10, 2);
        wait_until("they wait", || {
            waiter.in_hand().keys == 1 && warnings(&log, server.port()) == round.min(1) + 1
        });
        assert!(listed(server).is_empty(), "a waiter without pushes is not listed");
        guard.release().await.expect("the server answers");
        all(callers).await;
        if round == 2 {
            // Over new connections it is not said again.
            server.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
        }
    }
    wait_until_clean(server);
    managers.iter().for_each(wait_until_idle);
    assert_eq!(warnings(&log, server.port()), 2, "one for each manager");
}

#[test]
fn user_without_channels_takes_turns() {
    at_once(["", "+subscribe +publish"], async |more| {
        let server = limited(more);
        takes_turns(&server, &server.url_of_user("app")).await;
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_that_may_only_subscribe_takes_turns() {
    let server = limited("&cl1:* +subscribe");
    takes_turns(&server, &server.url_of_user("app")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_that_may_only_publish_takes_turns() {
    let server = limited("&cl1:* +publish");
    takes_turns(&server, &server.url_of_user("app")).await;
}

#[test]
fn server_with_resp2_only_takes_turns() {
    let renamed = RedisServer::builder().config("rename-command", "HELLO \"\"");
    at_once(
        [(renamed, ""), (RedisServer::builder(), "?protocol=resp2")],
        async |(builder, query)| {
            let server = builder.start();
            takes_turns(&server, &format!("{}{query}", server.url())).await;
        },
    );
}

/// With the rights that the warning names there are pushes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_with_channels_gets_pushes() {
    let log = Log::record();
    let server = limited("&cl1:* +subscribe +publish");
    let url = server.url_of_user("app");
    let (holder, locks) = (manager(&url).await, manager(&url).await);
    let guard = holder.acquire("room", &LONG).await.expect("it is free");
    let callers = sections(&locks, 1, 1);
    wait_until_listed(&server, 1);
    guard.release().await.expect("the server answers");
    all(callers).await;
    wait_until_clean(&server);
    assert_eq!(warnings(&log, server.port()), 0);
}

/// One manager is told, and the other is not, or cannot tell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fleet_of_both_kinds_takes_turns() {
    for more in ["", "&cl1:* +subscribe", "&cl1:* +publish"] {
        let server = limited(more);
        let (told, untold) =
            (manager(&server.url()).await, manager(&server.url_of_user("app")).await);
        for [holder, waiter] in [[&told, &untold], [&untold, &told], [&told, &untold]] {
            let guard = holder.acquire("room", &LONG).await.expect("it is free");
            let callers = sections(waiter, 5, 2);
            wait_until("they wait", || waiter.in_hand().keys == 1);
            guard.release().await.expect("the server answers");
            all(callers).await;
        }
        let mut callers = sections(&told, 10, 20);
        callers.extend(sections(&untold, 10, 20));
        all(callers).await;
        wait_until_clean(&server);
        [told, untold].iter().for_each(wait_until_idle);
    }
}

/// Managers with pushes hand the lock to each other. A waiter without pushes finds it free between them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiter_without_pushes_gets_turns_beside_two_with_them() {
    let server = limited("");
    let managers = [manager(&server.url()).await, manager(&server.url()).await];
    let callers: Vec<_> =
        managers.iter().flat_map(|locks| sections(locks, 20, usize::MAX)).collect();
    let untold = manager(&server.url_of_user("app")).await;
    all(sections(&untold, 1, 3)).await;
    callers.iter().for_each(JoinHandle::abort);
}

/// The other way round: the tokens of the manager that cannot publish say so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiter_with_pushes_gets_turns_beside_one_without_them() {
    let server = limited("");
    let untold = manager(&server.url_of_user("app")).await;
    let callers = sections(&untold, 20, usize::MAX);
    let told = manager(&server.url()).await;
    guarded(async {
        for _ in 0..50 {
            all(sections(&told, 1, 1)).await;
            let so_far = untold.stats().acquired;
            wait_until("the others go on", || untold.stats().acquired > so_far + 20);
        }
    })
    .await;
    callers.iter().for_each(JoinHandle::abort);
}

/// Whether the manager of a user with these rights says that it hands its locks on, at first and
/// after its first release.
async fn tells(rules: &str) -> [bool; 2] {
    let server = RedisServer::builder().user("app", "word", rules).start();
    let locks = patient(&server.url_of_user("app")).await;
    let mut told = [false; 2];
    for told in &mut told {
        let guard = locks.acquire("room", &LONG).await.expect("it is free");
        let holder = server.cli(&["GET", "room"]);
        *told = holder.starts_with("cl1:");
        assert!(*told || holder.starts_with("cl0:"), "{holder}");
        guard.release().await.expect("the server answers");
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holder_that_cannot_publish_says_so_by_its_token() {
    assert_eq!(tells(RULES).await, [false, false]);
    assert_eq!(tells(&format!("resetchannels {RULES} &cl1:* +subscribe")).await, [false, false]);
    assert_eq!(tells(&format!("resetchannels {RULES} &cl1:* +publish")).await, [true, true]);
    // Of the lists it is known when one was looked at.
    assert_eq!(tells(&without_lists()).await, [true, false]);
}

/// Another connection of the manager, for another runtime, may publish as the first one could.
#[test]
fn what_is_known_of_lists_outlasts_connection() {
    let server = RedisServer::builder().user("app", "word", &without_lists()).start();
    let mut locks = None;
    for _ in 0..3 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let is_first = locks.is_none();
            if is_first {
                let made = patient(&server.url_of_user("app")).await;
                // The manager's own connection is opened outside of a runtime. If it were opened later, by a
                // request that a busy machine leaves unpolled, it would find out about the lists anew.
                let pinged = thread::spawn({
                    let made = made.clone();
                    move || pollster::block_on(made.ping())
                });
                pinged.join().expect("no panic").expect("the server answers");
                locks = Some(made);
            }
            let locks = locks.as_ref().expect("there is one");
            // No release has told of the lists before the first one.
            let guards = [
                locks.acquire("room", &LONG).await.expect("it is free"),
                locks.acquire("room2", &LONG).await.expect("it is free"),
            ];
            for (name, guard) in ["room", "room2"].into_iter().zip(guards) {
                assert_eq!(server.cli(&["GET", name]).starts_with("cl1:"), is_first, "{name}");
                guard.release().await.expect("the server answers");
            }
        });
    }
}

/// A lock is passed on while there is no connection, and the one that is being opened hangs for
/// longer than the request has. No push tells the manager that it is its own lock that it waits for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiter_gets_lock_though_its_pass_was_never_sent() {
    let server = limited("");
    let proxy = Proxy::start(server.port());
    let url = server.url_of_user("app");
    let url = url.replace(&server.port().to_string(), &proxy.port().to_string());
    let log = Log::record();
    let locks = manager(&url).await;
    let guard = locks.acquire("room", &LONG).await.expect("it is free");
    // Another lease than the one that is held: it has to be asked for.
    let waiter = tokio::spawn({
        let locks = locks.clone();
        async move { locks.acquire("room", &LONG.expire(Duration::from_secs(60))).await }
    });
    let connections = |number| locks.in_hand().connections == number;
    // A connection that is not set up yet is opened again, which the manager does not notice.
    let is_set_up = || warnings(&log, proxy.port()) == 1;
    wait_until("it waits", || connections(2) && proxy.open() == 2 && is_set_up());
    proxy.swallow();
    proxy.cut();
    wait_until("the manager has noticed", || connections(1));
    drop(guard);
    let overdue = async {
        loop {
            match locks.try_acquire("room", &LONG).await {
                Ok(guard) => assert!(guard.is_none(), "there is no server"),
                Err(error) => break error,
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let error = guarded(overdue).await;
    assert!(matches!(error, LockError::Backend { .. }), "{error:?}");
    proxy.pass();
    proxy.cut();
    let guard = guarded(waiter).await.expect("no panic").expect("the lock that was passed on");
    guard.release().await.expect("the server answers");
    wait_until_clean(&server);
}

/// A user with channels, and without the lists in which managers wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_without_lists_takes_turns() {
    let log = Log::record();
    let server = RedisServer::builder().user("app", "word", &without_lists()).start();
    let url = server.url_of_user("app");
    let managers = [manager(&url).await, manager(&url).await];
    let callers: Vec<_> = managers.iter().flat_map(|locks| sections(locks, 10, 5)).collect();
    all(callers).await;
    assert_eq!(server.cli(&["EXISTS", "room:{room}:waiting"]), "0");
    assert_eq!(warnings(&log, server.port()), 2, "one for each manager");
}

fn without_lists() -> String {
    let rules = RULES.replace(" +zcard +zadd +zscore +zrange +zrem", "");
    assert!(!rules.contains("+z"), "{rules}");
    format!("resetchannels {rules} &cl1:* +publish +subscribe")
}

/// A right that is taken away while others wait: no script ends half done, so the lock is free, or
/// has gone on, and not kept for its lease. (A release that may not look at the lock does nothing.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_script_ends_half_done() {
    for taken in [
        "-set", "-pttl", "-pexpire", "-del", "-time", "-publish", "-zadd", "-zscore", "-zrange",
        "-zrem", "-zcard",
    ] {
        let server = limited("&cl1:* +subscribe +publish");
        let (limited, other) =
            (manager(&server.url_of_user("app")).await, manager(&server.url()).await);
        for (holder, waiter) in [(&limited, &other), (&other, &limited)] {
            server.cli(&["ACL", "SETUSER", "app", &taken.replace('-', "+")]);
            let guard = holder.acquire("room", &LONG).await.expect("it is free");
            let caller = tokio::spawn({
                let waiter = waiter.clone();
                async move {
                    let guard = waiter.acquire("room", &LONG).await?;
                    guard.release().await
                }
            });
            wait_until_listed(&server, 1);
            server.cli(&["ACL", "SETUSER", "app", taken]);
            let released = guard.release().await;
            let served = guarded(caller).await.expect("no panic");
            if std::ptr::eq(waiter, &other) {
                served.unwrap_or_else(|error| panic!("{taken}: {error}, {released:?}"));
            }
            wait_until(taken, || server.cli(&["EXISTS", "room"]) == "0");
            wait_until(taken, || listed(&server).is_empty());
        }
    }
}
