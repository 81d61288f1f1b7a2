//! A server that is dead, silent, loading, full or a replica, or forgets things: each caller
//! succeeds or gets an error that says so, and none hangs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use cache_lock::{
    BackendErrorKind, LockError, LockManager, LockOptions, LostReason, ReleaseOutcome,
};
use test_support::{Data, Direction, Fault, Proxy, RedisServer, wait_until};

use crate::common::fleet::guarded;

const PATIENT: LockOptions = LockOptions::new().timeout(Duration::from_secs(50));
const ONCE: LockOptions = LockOptions::new().timeout(Duration::ZERO);

async fn connect(server: &RedisServer) -> LockManager {
    LockManager::connect(&server.url()).await.expect("the server runs")
}

#[track_caller]
fn assert_backend(error: &LockError, kind: BackendErrorKind) {
    let LockError::Backend { source, .. } = error else { panic!("not of the backend: {error:?}") };
    assert_eq!(source.kind(), kind, "{error}");
    assert!(!error.is_contended());
}

/// Many tasks that take turns, and see whether they do.
struct Hammer {
    inside: Arc<AtomicUsize>,
    tasks: Vec<tokio::task::JoinHandle<Result<i64, LockError>>>,
}

impl Hammer {
    fn start(locks: &LockManager, tasks: usize, rounds: usize, options: LockOptions) -> Self {
        let inside = Arc::new(AtomicUsize::new(0));
        let tasks = (0..tasks).map(|_| {
            let (locks, inside) = (locks.clone(), Arc::clone(&inside));
            tokio::spawn(async move {
                let mut token = 0;
                for _ in 0..rounds {
                    let guard = locks.acquire("room", &options).await?;
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are inside");
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    assert!(guard.token().as_i64() > token);
                    token = guard.token().as_i64();
                    // It may fail, and goes on in the background then.
                    let _ = guard.release().await;
                }
                Ok(token)
            })
        });
        let tasks = tasks.collect();
        Self { inside, tasks }
    }

    fn is_done(&self) -> bool {
        self.tasks.iter().all(tokio::task::JoinHandle::is_finished)
    }

    async fn outcomes(self) -> Vec<Result<i64, LockError>> {
        let mut outcomes = Vec::new();
        for task in self.tasks {
            outcomes.push(guarded(task).await.expect("no panic"));
        }
        assert_eq!(self.inside.load(Ordering::SeqCst), 0);
        outcomes
    }

    /// Does something again and again while they hammer. All succeed.
    async fn while_running(self, disturb: impl Fn()) {
        while !self.is_done() {
            disturb();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for outcome in self.outcomes().await {
            outcome.expect("it has time enough");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_server_is_unreachable() {
    let server = RedisServer::start();
    let cold = LockManager::builder().connect_lazy(&server.url()).expect("a URL");
    let warm = connect(&server).await;
    let held = warm.acquire("held", &PATIENT).await.expect("it is free");
    server.kill();
    for locks in [&cold, &warm] {
        for options in [ONCE, ONCE.timeout(Duration::from_millis(300))] {
            let error = guarded(locks.acquire("room", &options)).await.expect_err("it is dead");
            assert_backend(&error, BackendErrorKind::Unreachable);
            assert!(error.is_retryable());
            assert!(
                guarded(locks.try_acquire("room", &options)).await.is_err(),
                "the server is dead"
            );
        }
    }
    assert_backend(
        &guarded(held.release()).await.expect_err("it is dead"),
        BackendErrorKind::Unreachable,
    );
    server.restart(Data::Lose);
    for locks in [&cold, &warm] {
        guarded(locks.run("room", &PATIENT, async |_| ())).await.expect("it is back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_outlive_restart() {
    let server = RedisServer::start();
    let (locks, holder) = (connect(&server).await, connect(&server).await);
    let held = holder.acquire("room", &PATIENT).await.expect("it is free");
    let waiters = Hammer::start(&locks, 100, 1, PATIENT);
    wait_until("they wait", || locks.in_hand().tasks >= 100 && server.calls("zadd") > 0);
    server.kill();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!waiters.is_done());
    server.restart(Data::Lose);
    for outcome in waiters.outcomes().await {
        let token = outcome.expect("it has time enough");
        assert!(token > held.token().as_i64());
    }
    // Its manager has asked about it as soon as it could.
    assert_eq!(guarded(held.lost()).await, LostReason::Gone);
    assert_eq!(guarded(held.release()).await.ok(), Some(ReleaseOutcome::AlreadyExpired));
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_of_server_that_stays_dead_get_errors() {
    let server = RedisServer::start();
    let (locks, holder) = (connect(&server).await, connect(&server).await);
    let held = holder.acquire("room", &PATIENT).await.expect("it is free");
    let waiters = Hammer::start(&locks, 100, 1, PATIENT.timeout(Duration::from_secs(3)));
    wait_until("they wait", || locks.in_hand().tasks >= 100 && server.calls("zadd") > 0);
    server.kill();
    for outcome in waiters.outcomes().await {
        assert_backend(&outcome.expect_err("it is dead"), BackendErrorKind::Unreachable);
    }
    drop(held);
}

/// A future that is left unpolled, as in a `select!`, while the connection is being opened for it.
#[tokio::test(flavor = "multi_thread")]
async fn unpolled_caller_keeps_no_other_from_connecting() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    proxy.set(Direction::Replies, Fault::Delay(Duration::from_millis(50)));
    let locks =
        LockManager::builder().connect_lazy(&server.url_through(proxy.port())).expect("a URL");
    let mut unpolled = std::pin::pin!(locks.acquire("unpolled", &PATIENT));
    std::future::poll_fn(|context| {
        assert!(unpolled.as_mut().poll(context).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    guarded(locks.run("room", &PATIENT, async |_| ())).await.expect("it is free");
    // The driver has one of its own.
    assert!(proxy.accepted() <= 2, "they share a connection");
    drop(guarded(unpolled).await.expect("it is free"));
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_network_is_timeout() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let builder = || LockManager::builder().attempt_timeout(Duration::from_millis(100));
    let url = server.url_through(proxy.port());
    let cold = builder().connect_lazy(&url).expect("a URL");
    let warm = builder().connect(&url).await.expect("the server runs");
    let held = warm.acquire("held", &PATIENT).await.expect("it is free");
    proxy.swallow();
    for locks in [&cold, &warm] {
        for timeout in [Duration::ZERO, Duration::from_millis(500)] {
            let acquired = guarded(locks.acquire("room", &ONCE.timeout(timeout))).await;
            let error = acquired.expect_err("it is silent");
            assert_backend(&error, BackendErrorKind::Timeout);
            assert!(error.is_retryable());
        }
    }
    let extended = guarded(held.extend(Duration::from_secs(20))).await;
    assert_backend(&extended.expect_err("it is silent"), BackendErrorKind::Timeout);
    assert!(!held.is_lost(), "no answer said so");
    let error = guarded(held.release()).await.expect_err("it is silent");
    assert_backend(&error, BackendErrorKind::Timeout);
    proxy.pass();
    for locks in [&cold, &warm] {
        guarded(locks.run("room", &PATIENT, async |_| ())).await.expect("it is back");
    }
    wait_until("the release was tried again", || server.cli(&["EXISTS", "held"]) == "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_server_is_timeout() {
    let server = RedisServer::start();
    let cold = LockManager::builder().connect_lazy(&server.url()).expect("a URL");
    let warm = connect(&server).await;
    server.stop();
    for locks in [&cold, &warm] {
        let error = guarded(locks.acquire("room", &ONCE)).await.expect_err("it is silent");
        assert_backend(&error, BackendErrorKind::Timeout);
    }
    server.cont();
    for locks in [&cold, &warm] {
        guarded(locks.run("room", &PATIENT, async |_| ())).await.expect("it is back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn loading_server_is_waited_for() {
    let server = RedisServer::start();
    let locks = connect(&server).await;
    server.restart_loading();
    let error = guarded(locks.acquire("room", &ONCE)).await.expect_err("it is loading");
    assert_backend(&error, BackendErrorKind::Loading);
    assert!(error.is_retryable());
    let waiter = Hammer::start(&locks, 1, 1, PATIENT);
    server.finish_loading();
    for outcome in waiter.outcomes().await {
        outcome.expect("it has time enough");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_server_grants_nothing_and_keeps_what_it_has() {
    let server = RedisServer::builder().config("maxmemory-policy", "noeviction").start();
    let locks = connect(&server).await;
    let held = locks.acquire("held", &PATIENT).await.expect("it is free");
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = guarded(locks.acquire("room", &ONCE)).await.expect_err("it is full");
    assert_backend(&error, BackendErrorKind::OutOfMemory);
    assert!(error.is_retryable());
    assert_eq!(server.cli(&["EXISTS", "room", "room:{room}:fence"]), "0");
    let contended = guarded(locks.acquire("held", &ONCE)).await.expect_err("it is held");
    assert!(contended.is_contended(), "it is ours, whatever the server says: {contended}");
    guarded(held.extend(Duration::from_secs(60))).await.expect("that takes no memory");
    assert_eq!(guarded(held.release()).await.ok(), Some(ReleaseOutcome::Released));
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    guarded(locks.run("room", &ONCE, async |_| ())).await.expect("there is room again");
}

#[tokio::test(flavor = "multi_thread")]
async fn primary_that_became_replica_is_read_only() {
    let (server, primary) = (RedisServer::start(), RedisServer::start());
    let locks = connect(&server).await;
    guarded(locks.run("room", &ONCE, async |_| ())).await.expect("it is free");
    server.cli(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    let error = guarded(locks.acquire("room", &ONCE)).await.expect_err("it takes no writes");
    assert_backend(&error, BackendErrorKind::ReadOnly);
    assert!(error.is_retryable());
    let waiter = Hammer::start(&locks, 1, 1, PATIENT);
    server.cli(&["REPLICAOF", "NO", "ONE"]);
    for outcome in waiter.outcomes().await {
        outcome.expect("it takes writes again");
    }
}

/// Says that a thread is to stop, also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn constantly_flushed_scripts_cost_no_turn() {
    let server = RedisServer::start();
    let locks = connect(&server).await;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                server.cli(&["SCRIPT", "FLUSH"]);
            }
        });
        let _stop = Stop(&done);
        let hammering = async {
            for _ in 0..500 {
                // Tried once: not one call may fail.
                let guard = guarded(locks.acquire("room", &ONCE)).await.expect("it is free");
                guarded(guard.extend(Duration::from_secs(20))).await.expect("it is held");
                assert_eq!(guarded(guard.release()).await.ok(), Some(ReleaseOutcome::Released));
            }
        };
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(hammering));
    });
    Hammer::start(&locks, 20, 5, PATIENT)
        .while_running(|| drop(server.cli(&["SCRIPT", "FLUSH"])))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn constantly_killed_connections_cost_no_turn() {
    let server = RedisServer::start();
    let locks = connect(&server).await;
    Hammer::start(&locks, 20, 10, PATIENT)
        .while_running(|| drop(server.cli(&["CLIENT", "KILL", "TYPE", "normal"])))
        .await;
    wait_until("all is released", || server.cli(&["EXISTS", "room"]) == "0");
}

/// The data goes away under a holder.
async fn data_is_lost(lose: impl Fn(&RedisServer)) {
    let server = RedisServer::start();
    let (locks, other) = (connect(&server).await, connect(&server).await);
    let options = PATIENT.expire(Duration::from_secs(6));
    let first = locks.acquire("room", &options).await.expect("it is free");
    let second = locks.acquire("hall", &options.renew(false)).await.expect("it is free");
    lose(&server);
    let next = guarded(other.acquire("room", &options)).await.expect("the record is gone");
    assert!(next.token() > first.token());
    assert_eq!(guarded(first.lost()).await, LostReason::Gone);
    assert!(matches!(
        guarded(second.extend(Duration::from_secs(6))).await,
        Err(LockError::Lost { reason: LostReason::Gone, .. })
    ));
    assert_eq!(server.cli(&["EXISTS", "hall"]), "0", "what is gone is not made again");
    for guard in [first, second] {
        assert_eq!(guarded(guard.release()).await.ok(), Some(ReleaseOutcome::AlreadyExpired));
    }
    assert_eq!(
        guarded(next.release()).await.ok(),
        Some(ReleaseOutcome::Released),
        "the lock is ours"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn restart_without_data_ends_leases() {
    data_is_lost(|server| server.restart(Data::Lose)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flush_of_all_data_ends_leases() {
    data_is_lost(|server| drop(server.cli(&["FLUSHALL"]))).await;
}

/// MISCONF: the last save has failed. It passes, so an acquisition waits for its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_outlive_failed_save() {
    let server = RedisServer::builder().config("save", "3600 1").start();
    let dir = server.cli(&["CONFIG", "GET", "dir"]);
    let dir = dir.split_whitespace().last().expect("it has one").trim_matches('"');
    let in_the_way = std::path::Path::new(dir).join("dump.rdb");
    let status = |status: &str| {
        server.cli(&["INFO", "persistence"]).contains(&format!("rdb_last_bgsave_status:{status}"))
    };
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    std::fs::create_dir(&in_the_way).expect("there is no dump");
    server.cli(&["BGSAVE"]);
    wait_until("the save has failed", || status("err"));
    let once = LockOptions::new().timeout(Duration::ZERO);
    let error = locks.acquire("room", &once).await.expect_err("the server takes no writes");
    assert!(error.is_retryable() && error.to_string().contains("takes no writes"), "{error}");
    let waiting = tokio::spawn({
        let locks = locks.clone();
        let options = LockOptions::new().timeout(Duration::from_secs(60));
        async move { locks.acquire("room", &options).await }
    });
    let asked = server.calls("evalsha");
    wait_until("it asks again", || {
        assert!(!waiting.is_finished(), "it does not wait");
        server.calls("evalsha") > asked + 2
    });
    std::fs::remove_dir(&in_the_way).expect("it is empty");
    server.cli(&["BGSAVE"]);
    let guard = waiting.await.expect("no panic").expect("the save has succeeded");
    guard.release().await.expect("the server answers");
}
