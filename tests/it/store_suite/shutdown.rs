//! The end of a manager.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cache_lock::{LockError, LockGuard, LockKey, LockManager, LostReason, OnLost};
use test_support::{Direction, Fault, Proxy, RedisServer, wait_until};

use crate::common::fleet::{Fleet, PATIENT, guarded, loss, on_both_stores, records};

/// Longer than a test takes: where it is the bound of something, that something did not happen.
const LONG: Duration = Duration::from_secs(30);

on_both_stores!(
    body_that_runs_is_cancelled,
    body_that_is_to_finish_does,
    guard_in_use_is_lost,
    waiters_are_sent_away,
    nothing_is_acquired_any_more,
);

async fn body_that_runs_is_cancelled(fleet: Fleet) {
    // However busy the machine is, the body lets go before its lock is taken from it.
    let locks = fleet.build(LockManager::builder().attempt_timeout(LONG)).await;
    let (started, dropped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let task = tokio::spawn({
        let (locks, started, dropped) = (locks.clone(), Arc::clone(&started), Arc::clone(&dropped));
        async move {
            let body = async |_: &LockGuard| {
                let _flag = SetOnDrop(dropped);
                started.store(true, Ordering::SeqCst);
                std::future::pending::<()>().await;
            };
            locks.run("job", &PATIENT, body).await
        }
    });
    wait_until("the body runs", || started.load(Ordering::SeqCst));
    locks.shutdown().await;
    assert_eq!(fleet.records(), 0);
    assert!(dropped.load(Ordering::SeqCst));
    let error = task.await.expect("no panic").expect_err("cancelled");
    assert_eq!(loss(&error), Some(LostReason::ShutDown));
}

async fn body_that_is_to_finish_does(fleet: Fleet) {
    let locks = fleet.build(LockManager::builder().attempt_timeout(LONG)).await;
    let body = async |lock: &LockGuard| {
        let (reason, ()) = tokio::join!(lock.lost(), async {
            // It waits for this body to let go, for one attempt: which is longer than this.
            let shutdown = locks.shutdown();
            assert!(tokio::time::timeout(Duration::from_millis(100), shutdown).await.is_err());
        });
        reason
    };
    let reason = locks.run("job", &PATIENT.on_lost(OnLost::Finish), body).await;
    assert_eq!(reason.expect("it finishes"), LostReason::ShutDown);
    assert_eq!(fleet.records(), 0);
}

async fn guard_in_use_is_lost(fleet: Fleet) {
    let builder = LockManager::builder().attempt_timeout(Duration::from_millis(500));
    let locks = fleet.build(builder).await;
    let guard = locks.acquire("job", &PATIENT).await.expect("free");
    locks.shutdown().await;
    assert_eq!(fleet.records(), 0, "it was taken from its holder");
    assert_eq!(guard.lost().await, LostReason::ShutDown);
    let extended = guard.extend(LONG).await.expect_err("lost");
    assert_eq!(loss(&extended), Some(LostReason::ShutDown));
    drop(guard);
    assert_eq!(locks.in_hand().leases, 0);
}

async fn waiters_are_sent_away(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let guard = there.acquire("job", &PATIENT).await.expect("free");
    let waiter = here.acquire("job", &PATIENT);
    let (waited, ()) = tokio::join!(waiter, async {
        // Timers run only while a release waits for its next try.
        while here.in_hand().timers == 0 {
            tokio::task::yield_now().await;
        }
        here.shutdown().await;
    });
    assert!(matches!(waited, Err(LockError::ShutDown)), "{waited:?}");
    assert!(!guard.is_lost());
}

async fn nothing_is_acquired_any_more(fleet: Fleet) {
    let locks = fleet.manager().await;
    locks.clone().shutdown().await;
    let acquired = locks.acquire("job", &PATIENT).await;
    assert!(matches!(acquired, Err(LockError::ShutDown)), "{acquired:?}");
    let tried = locks.try_acquire("job", &PATIENT).await;
    assert!(matches!(tried, Err(LockError::ShutDown)), "{tried:?}");
    locks.shutdown().await;
    assert_eq!(fleet.records(), 0);
}

/// A server behind a proxy, and a manager whose requests may take long.
async fn slow() -> (RedisServer, Proxy, LockManager) {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let builder = LockManager::builder().attempt_timeout(LONG);
    let locks = builder.connect(&server.url_through(proxy.port())).await;
    (server, proxy, locks.expect("the server is there"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pending_releases_are_waited_for() {
    guarded(async {
        let (server, proxy, locks) = slow().await;
        let mut guards = Vec::new();
        for number in 0..20 {
            let key = LockKey::new("room").part(number);
            guards.push(locks.acquire(key, &PATIENT).await.expect("free"));
        }
        proxy.set(Direction::Requests, Fault::Hold);
        drop(guards);
        let mut shutdown = Box::pin(locks.shutdown());
        let early = tokio::time::timeout(Duration::from_millis(200), &mut shutdown).await;
        assert!(early.is_err(), "the server has not been told anything yet");
        proxy.pass();
        shutdown.await;
        assert_eq!(records(&server), 0);
    })
    .await;
}

/// A lease whose renewal is under way is one that is held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lease_that_is_being_renewed_is_lost_too() {
    guarded(async {
        let server = RedisServer::start();
        let proxy = Proxy::start(server.port());
        let builder = LockManager::builder().attempt_timeout(Duration::from_secs(3));
        let locks = builder.connect(&server.url_through(proxy.port())).await;
        let locks = locks.expect("the server is there");
        let options = PATIENT.expire(Duration::from_secs(10));
        let guard = locks.acquire("job", &options).await.expect("free");
        proxy.set(Direction::Replies, Fault::Hold);
        wait_until("the renewal is under way", || locks.in_hand().tasks > 0);
        let (reason, ()) = tokio::join!(guard.lost(), async {
            let shutdown = locks.shutdown();
            tokio::pin!(shutdown);
            let early = tokio::time::timeout(Duration::from_millis(100), &mut shutdown).await;
            proxy.pass();
            if early.is_err() {
                shutdown.await;
            }
        });
        assert_eq!(reason, LostReason::ShutDown);
        assert_eq!(records(&server), 0, "it was taken from its holder");
    })
    .await;
}

/// An answer that comes after the shutdown is not accepted, and what it granted is given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lock_that_comes_too_late_is_given_back() {
    guarded(async {
        let (server, proxy, locks) = slow().await;
        // So that there is a connection, and a script, for what follows.
        drop(locks.acquire("other", &PATIENT).await.expect("free"));
        wait_until("it is released", || records(&server) == 0);
        proxy.set(Direction::Replies, Fault::Hold);
        let task = tokio::spawn({
            let locks = locks.clone();
            async move { locks.try_acquire("job", &PATIENT).await }
        });
        wait_until("it is granted", || records(&server) == 1);
        let mut shutdown = Box::pin(locks.shutdown());
        let early = tokio::time::timeout(Duration::from_millis(200), &mut shutdown).await;
        assert!(early.is_err(), "the acquisition is still under way");
        proxy.pass();
        shutdown.await;
        assert_eq!(records(&server), 0, "it is given back");
        let acquired = task.await.expect("no panic");
        assert!(matches!(acquired, Err(LockError::ShutDown)), "{acquired:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_ends_though_server_is_silent() {
    guarded(async {
        let server = RedisServer::start();
        let locks = LockManager::connect(&server.url()).await.expect("the server is there");
        let held = locks.acquire("held", &PATIENT).await.expect("free");
        let dropped = locks.acquire("dropped", &PATIENT).await.expect("free");
        server.stop();
        drop(dropped);
        locks.shutdown().await;
        assert_eq!(held.lost().await, LostReason::ShutDown);
    })
    .await;
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_shutdown_nothing_is_sent() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let url = server.url_through(proxy.port());
    for used in [false, true] {
        let locks = LockManager::builder().connect_lazy(&url).expect("a URL");
        if used {
            let guard = locks.acquire("job", &PATIENT).await.expect("it is free");
            guard.release().await.expect("the server answers");
        }
        locks.shutdown().await;
        let before = (proxy.accepted(), proxy.commands());
        let error = locks.acquire("job", &PATIENT).await.expect_err("it has ended");
        assert!(matches!(error, LockError::ShutDown), "{error}");
        wait_until("nothing is in hand", || locks.in_hand().tasks == 0);
        assert_eq!((proxy.accepted(), proxy.commands()), before);
    }
}
