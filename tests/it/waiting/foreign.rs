//! Holders and waiters that are no managers: a plain `SET key token NX PX`, as other libraries do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use cache_lock::{LockError, LockManager};
use test_support::{RedisServer, wait_until};
use tokio::task::JoinHandle;

use super::{LONG, acquiring, wait_until_clean, wait_until_idle};
use crate::common::fleet::guarded;

async fn manager(server: &RedisServer) -> LockManager {
    LockManager::connect(&server.url()).await.expect("the server runs")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_lock_is_waited_for() {
    let server = RedisServer::start();
    let locks = manager(&server).await;
    // It runs out, or its holder removes it.
    for expire in [Some("300"), None] {
        match expire {
            Some(expire) => server.cli(&["SET", "room", "theirs", "NX", "PX", expire]),
            None => server.cli(&["SET", "room", "theirs", "NX"]),
        };
        let callers: Vec<_> = (0..20)
            .map(|_| {
                let waiting = acquiring(&locks, LONG);
                tokio::spawn(async move { drop(waiting.await.expect("it gets its turn")) })
            })
            .collect();
        if expire.is_none() {
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert_eq!(server.cli(&["GET", "room"]), "theirs");
            let calls = server.calls("evalsha");
            tokio::time::sleep(Duration::from_millis(300)).await;
            let calls = server.calls("evalsha") - calls;
            assert!(calls < 600, "{calls} calls of 20 callers in 300 ms");
            server.cli(&["DEL", "room"]);
        }
        for caller in callers {
            guarded(caller).await.expect("no panic");
        }
        wait_until_clean(&server);
    }
    wait_until_idle(&locks);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lock_without_end_is_reported() {
    let server = RedisServer::start();
    let locks = manager(&server).await;
    server.cli(&["SET", "room", "theirs", "NX"]);
    let waiting = acquiring(&locks, LONG.timeout(Duration::from_millis(50)));
    let error = guarded(waiting).await.expect_err("it is held");
    assert!(matches!(error, LockError::Contended { no_expiry: true, .. }), "{error:?}");
    wait_until_idle(&locks);
    assert_eq!(server.cli(&["DBSIZE"]), "1", "nothing but the foreign record");
}

/// Callers that want the lock again as soon as they have released it.
fn hammer(
    locks: &LockManager,
    ended: &Arc<AtomicBool>,
    sections: &Arc<AtomicU64>,
    callers: usize,
) -> Vec<JoinHandle<()>> {
    (0..callers)
        .map(|_| {
            let (locks, ended, sections) = (locks.clone(), Arc::clone(ended), Arc::clone(sections));
            tokio::spawn(async move {
                while !ended.load(Ordering::SeqCst) {
                    let guard = acquiring(&locks, LONG).await.expect("it gets its turn");
                    sections.fetch_add(1, Ordering::SeqCst);
                    drop(guard);
                }
            })
        })
        .collect()
}

/// A poller gets the lock between so many callers of each of so many managers.
async fn a_poller_gets_its_turn(managers: usize, each: usize) {
    let server = RedisServer::start();
    let (ended, sections) = (Arc::default(), Arc::default());
    let mut callers = Vec::new();
    for _ in 0..managers {
        callers.extend(hammer(&manager(&server).await, &ended, &sections, each));
    }
    for _ in 0..3 {
        let before = sections.load(Ordering::SeqCst);
        wait_until("they run", || sections.load(Ordering::SeqCst) > before + 100);
        let mut polls = 0;
        wait_until("the poller has the lock", || {
            polls += 1;
            server.cli(&["SET", "room", "theirs", "NX", "PX", "60000"]) == "OK"
        });
        let during = sections.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(sections.load(Ordering::SeqCst) <= during + 1, "two hold it");
        server.cli(&["DEL", "room"]);
    }
    ended.store(true, Ordering::SeqCst);
    for caller in callers {
        guarded(caller).await.expect("no panic");
    }
    wait_until_clean(&server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn poller_gets_its_turn_beside_manager() {
    a_poller_gets_its_turn(1, 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn poller_gets_its_turn_beside_two_managers() {
    a_poller_gets_its_turn(2, 50).await;
}

/// The manager has no waiter of its own when it leaves the lock free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn poller_gets_its_turn_beside_two_callers() {
    a_poller_gets_its_turn(2, 1).await;
}
