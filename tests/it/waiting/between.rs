//! From one manager to the next: the waiting list, grants by push, and losses on the way.

use std::sync::{Arc, Mutex};

use cache_lock::{LockGuard, LockManager};
use test_support::{Data, Direction, Fault, PatternSubscriber, Proxy, RedisServer};
use tokio::task::JoinHandle;

use super::{
    LONG, SECOND,
    crew::{Log, Member, Work},
    inbox, kill_inboxes, listed,
    soak::expired,
    wait_until_clean, wait_until_idle, wait_until_listed,
};
use crate::common::{
    fleet::guarded,
    monitor::{Call, Monitor},
};

/// What was sent over a connection that broke is taken back for ten attempts, in the background.
async fn manager(server: &RedisServer) -> LockManager {
    let builder = LockManager::builder().attempt_timeout(SECOND / 5);
    builder.connect(&server.url()).await.expect("the server runs")
}

async fn taken(locks: &LockManager) -> LockGuard {
    locks.acquire("room", &LONG).await.expect("it gets its turn")
}

async fn release(guard: LockGuard) {
    // On a busy machine the answer may take longer than an attempt; it is tried again then.
    if let Err(error) = guard.release().await {
        assert!(error.is_retryable(), "{error}");
    }
}

fn waiting(locks: &LockManager) -> JoinHandle<LockGuard> {
    let locks = locks.clone();
    tokio::spawn(async move { taken(&locks).await })
}

/// Has a manager wait, and stand on the list behind those before.
fn listed_behind(
    server: &RedisServer,
    locks: &LockManager,
    before: usize,
) -> JoinHandle<LockGuard> {
    let waiting = waiting(locks);
    wait_until_listed(server, before + 1);
    waiting
}

/// What was asked after the release, which is sent twice if its script is not known yet.
fn after_release(calls: &[Call]) -> &[Call] {
    let release = calls.iter().rposition(Call::is_release).expect("there was one");
    &calls[release + 1..]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn release_grants_to_manager_that_waits() {
    let server = RedisServer::start();
    let (holder, locks) = (manager(&server).await, manager(&server).await);
    let guard = taken(&holder).await;
    let waiter = listed_behind(&server, &locks, 0);
    let token = listed(&server).remove(0);
    let monitor = Monitor::of(&server);
    release(guard).await;
    // Before its timer would have asked.
    assert_eq!(server.cli(&["GET", "room"]), token);
    let guard = guarded(waiter).await.expect("no panic");
    let calls = monitor.calls(&server);
    let [call] = after_release(&calls) else { panic!("{calls:?}") };
    assert!(call.is_acquire() && call.owner == token, "{call:?}");
    assert_eq!(server.cli(&["GET", "room"]), token);
    assert!(listed(&server).is_empty());
    release(guard).await;
    wait_until_clean(&server);
    assert_eq!(expired(&server), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn managers_take_turns_in_order_of_their_coming() {
    let server = RedisServer::start();
    let holder = manager(&server).await;
    let guard = taken(&holder).await;
    let (order, mut waiters) = (Arc::new(Mutex::new(Vec::new())), Vec::new());
    for number in 0..5 {
        let (locks, order) = (manager(&server).await, Arc::clone(&order));
        waiters.push(tokio::spawn(async move {
            let guard = taken(&locks).await;
            order.lock().expect("no panic").push(number);
            release(guard).await;
        }));
        wait_until_listed(&server, number + 1);
    }
    release(guard).await;
    for waiter in waiters {
        guarded(waiter).await.expect("no panic");
    }
    assert_eq!(*order.lock().expect("no panic"), [0, 1, 2, 3, 4]);
    wait_until_clean(&server);
    assert_eq!(expired(&server), 0);
}

/// One place on the list for all of its callers; one connection, whatever the number of keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manager_is_listed_once_for_key() {
    let server = RedisServer::start();
    let (holder, locks) = (manager(&server).await, manager(&server).await);
    let guard = taken(&holder).await;
    let one_section = || {
        let locks = locks.clone();
        tokio::spawn(async move { release(taken(&locks).await).await })
    };
    let first = one_section();
    wait_until_listed(&server, 1);
    let before = server.calls("evalsha");
    let more: Vec<_> = (0..100).map(|_| one_section()).collect();
    test_support::wait_until("all wait", || locks.in_hand().tasks >= 101);
    assert_eq!(listed(&server).len(), 1);
    // Its timers, if it takes so long.
    assert!(server.calls("evalsha") - before < 50);

    let mut others = Vec::new();
    for key in 0..20 {
        others.push(holder.acquire(format!("other:{key}"), &LONG).await.expect("it is free"));
        let locks = locks.clone();
        let waiting = async move { locks.acquire(format!("other:{key}"), &LONG).await };
        drop(tokio::spawn(waiting));
    }
    let waiting = || server.cli(&["KEYS", "*:waiting"]).lines().count();
    test_support::wait_until("each key is waited for", || waiting() == 21);
    assert!(super::inbox_connections(&server).len() <= 2);
    assert!(locks.in_hand().connections <= 2);
    drop(others);
    release(guard).await;
    for waiter in [first].into_iter().chain(more) {
        guarded(waiter).await.expect("no panic");
    }
    wait_until_clean(&server);
    wait_until_idle(&locks);
}

/// A user's rules but those that tell the living from the counted.
const RULES: &str = "resetchannels ~room ~room:* +evalsha +eval +set +get +pttl +pexpire +del +time \
                     &cl1:* +subscribe +publish +zcard +zadd +zscore +zrange +zrem";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manager_that_has_gone_is_skipped() {
    gone_before_another(&RedisServer::start(), Watched(false), Costs(0)).await;
}

/// PUBLISH counts a monitoring tool among the receivers of a grant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manager_that_has_gone_is_skipped_beside_pattern_subscriber() {
    gone_before_another(&RedisServer::start(), Watched(true), Costs(0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn right_to_count_subscribers_is_optional() {
    let limited = |more: &str| {
        let rules = format!("{RULES} {more}");
        RedisServer::builder().user("app", "word", &rules).start()
    };
    gone_before_another(&limited("+pubsub|numsub"), Watched(true), Costs(0)).await;
    gone_before_another(&limited(""), Watched(false), Costs(0)).await;
    gone_before_another(&limited(""), Watched(true), Costs(1)).await;
}

struct Watched(bool);

/// The claims that are waited for.
struct Costs(u64);

async fn gone_before_another(server: &RedisServer, watched: Watched, costs: Costs) {
    let proxy = Proxy::start(server.port());
    let has_user = server.cli(&["ACL", "USERS"]).contains("app");
    let url = if has_user { server.url_of_user("app") } else { server.url() };
    let connect = async |url: &str| {
        let builder = LockManager::builder().attempt_timeout(SECOND / 5);
        builder.connect(url).await.expect("the server runs")
    };
    let (holder, locks) = (connect(&url).await, connect(&url).await);
    let through = url.replace(&server.port().to_string(), &proxy.port().to_string());
    let gone = LockManager::connect(&through).await.expect("the server runs");
    let _watcher = watched.0.then(|| PatternSubscriber::of(server));
    let guard = taken(&holder).await;
    let lost = listed_behind(server, &gone, 0);
    let waiter = listed_behind(server, &locks, 1);
    let token = listed(server).remove(0);
    proxy.refuse();
    test_support::wait_until("it listens no more", || {
        server.cli(&["PUBSUB", "NUMSUB", inbox(&token)]).ends_with('0')
    });
    let token = listed(server).remove(1);
    let monitor = Monitor::of(server);
    release(guard).await;
    let guard = guarded(waiter).await.expect("no panic");
    let calls = monitor.calls(server);
    if costs.0 == 0 {
        // The grant was in the release, and the one request is its claim.
        let [call] = after_release(&calls) else { panic!("{calls:?}") };
        assert!(call.is_acquire() && call.owner == token, "{call:?}");
        assert!(listed(server).is_empty(), "it was taken off the list");
    }
    assert_eq!(expired(server), costs.0, "claims that were waited for");
    proxy.pass();
    release(guard).await;
    release(guarded(lost).await.expect("no panic")).await;
}

/// A process that is stopped listens still. It costs its claim, and no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grant_of_stopped_process_passes_on() {
    let (server, log) = (RedisServer::start(), Log::new("stopped"));
    let (holder, locks) = (manager(&server).await, manager(&server).await);
    let mut stopped = Member::start(&server, &log);
    let guard = taken(&holder).await;
    stopped.begin(Work {
        callers: 1,
        sections: 1,
        expire: SECOND * 3600,
        timeout: SECOND * 60,
        impatient: 0,
    });
    wait_until_listed(&server, 1);
    let waiter = listed_behind(&server, &locks, 1);
    let granted = listed(&server).remove(0);
    stopped.stop();
    release(guard).await;
    assert_eq!(server.cli(&["GET", "room"]), granted);
    let guard = guarded(waiter).await.expect("no panic");
    assert_eq!(expired(&server), 1, "the claim, and nothing else");
    stopped.signal("CONT");
    release(guard).await;
    let report = stopped.report();
    assert_eq!((report.sections, report.failed, report.lost), (1, 0, 0));
    wait_until_clean(&server);
}

/// A new connection is opened, and the waiters ask again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_pushes_cost_no_turn() {
    let server = RedisServer::start();
    let (holder, locks) = (manager(&server).await, manager(&server).await);
    let mut token = 0;
    for round in 0..20 {
        let guard = taken(&holder).await;
        let waiter = waiting(&locks);
        wait_until_listed(&server, 1);
        if round % 2 == 0 {
            kill_inboxes(&server);
            release(guard).await;
        } else {
            release(guard).await;
            kill_inboxes(&server);
        }
        let guard = guarded(waiter).await.expect("no panic");
        assert!(guard.token().as_i64() > token);
        token = guard.token().as_i64();
        release(guard).await;
        wait_until_clean(&server);
    }
    wait_until_idle(&locks);
    wait_until_idle(&holder);
    assert_eq!(expired(&server), 0, "a waiter waited for a claim to expire");
}

/// No push is sent again: the waiter's timer moves the lock on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lock_that_becomes_free_without_push_is_taken() {
    let server = RedisServer::start();
    let (holder, locks) = (manager(&server).await, manager(&server).await);
    let guard = taken(&holder).await;
    let waiter = listed_behind(&server, &locks, 0);
    // The lease has an hour to go.
    server.cli(&["DEL", "room"]);
    release(guarded(waiter).await.expect("no panic")).await;
    drop(guard);
    wait_until_clean(&server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushed_scripts_cost_no_turn() {
    let server = RedisServer::start();
    let (holder, locks) = (manager(&server).await, manager(&server).await);
    for _ in 0..5 {
        let guard = taken(&holder).await;
        let waiter = listed_behind(&server, &locks, 0);
        server.cli(&["SCRIPT", "FLUSH"]);
        release(guard).await;
        let guard = guarded(waiter).await.expect("no panic");
        let waiter = listed_behind(&server, &holder, 0);
        server.cli(&["SCRIPT", "FLUSH"]);
        release(guard).await;
        release(guarded(waiter).await.expect("no panic")).await;
    }
    wait_until_clean(&server);
    assert_eq!(expired(&server), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_comes_back_empty_serves_waiters() {
    let server = RedisServer::start();
    let holder = manager(&server).await;
    let managers = [manager(&server).await, manager(&server).await];
    let guard = taken(&holder).await;
    let tokens = Arc::new(Mutex::new(vec![guard.token().as_i64()]));
    let waiters: Vec<_> = (0..150)
        .map(|number| {
            let (locks, tokens) = (managers[number % 2].clone(), Arc::clone(&tokens));
            tokio::spawn(async move {
                let guard = taken(&locks).await;
                tokens.lock().expect("no panic").push(guard.token().as_i64());
                drop(guard);
            })
        })
        .collect();
    wait_until_listed(&server, 2);
    server.restart(Data::Lose);
    for waiter in waiters {
        guarded(waiter).await.expect("no panic");
    }
    let tokens = tokens.lock().expect("no panic").clone();
    assert_eq!(tokens.len(), 151);
    assert!(tokens.is_sorted_by(|before, after| before < after), "{tokens:?}");
    drop(guard);
    wait_until_clean(&server);
    managers.iter().for_each(wait_until_idle);
}

/// The manager gives back an unwanted grant as soon as it hears of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unwanted_grants_go_back() {
    let server = RedisServer::start();
    let (holder, locks) = (manager(&server).await, manager(&server).await);
    let guard = taken(&holder).await;
    let waiter = listed_behind(&server, &locks, 0);
    let token = listed(&server).remove(0);
    waiter.abort();
    wait_until_listed(&server, 0);
    release(guard).await;
    for what in ["grant", "demand"] {
        // As after a request that came late.
        server.cli(&["SET", "room", &token, "PX", "3600000"]);
        server.cli(&["PUBLISH", inbox(&token), &format!("{what} {token} room")]);
        wait_until_clean(&server);
    }
    // A waiter tells the manager that the holder's token names, and this one does not know the grant.
    server.cli(&["SET", "room", &token, "PX", "3600000"]);
    release(guarded(waiting(&holder)).await.expect("no panic")).await;
    wait_until_clean(&server);
}

/// Over the new connection its manager asks at once, and finds the grant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grant_lost_with_its_connection_is_found_again() {
    const ROUNDS: u64 = 10;
    let server = RedisServer::start();
    let holder = manager(&server).await;
    for _ in 0..ROUNDS {
        let proxy = Proxy::start(server.port());
        let locks = LockManager::connect(&server.url_through(proxy.port())).await;
        let locks = locks.expect("the server runs");
        let guard = taken(&holder).await;
        let waiter = listed_behind(&server, &locks, 0);
        let granted = listed(&server).remove(0);
        proxy.set(Direction::Replies, Fault::Hold);
        release(guard).await;
        assert_eq!(server.cli(&["GET", "room"]), granted);
        proxy.cut();
        proxy.pass();
        release(guarded(waiter).await.expect("no panic")).await;
        wait_until_clean(&server);
    }
    // Each time, if no waiter asked before its timer.
    assert!(expired(&server) < ROUNDS / 2, "the claims were waited for");
}
