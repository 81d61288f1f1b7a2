//! The recipe for a job that a fleet does once a night, and `skip_if_locked` in its place.

#[path = "../../examples/once_a_night.rs"]
#[expect(dead_code, reason = "its `main` is not run here")]
mod recipe;

use std::{
    convert::Infallible,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};

use cache_lock::{LockError, LockManager, cache_lock};
use test_support::RedisServer;

use self::recipe::once;

/// Two processes of a fleet.
async fn fleet(server: &RedisServer) -> [LockManager; 2] {
    let connect = async || LockManager::connect(&server.url()).await.expect("the server is there");
    [connect().await, connect().await]
}

/// Imports as many rows as there were imports.
async fn import(runs: &AtomicU64) -> Result<u64, Infallible> {
    Ok(runs.fetch_add(1, SeqCst) + 1)
}

#[tokio::test]
async fn run_that_has_ended_is_not_repeated_in_its_night() {
    let server = RedisServer::start();
    let runs = AtomicU64::new(0);
    for night in ["2026-12-01", "2026-12-02"] {
        let mut rows = Vec::new();
        for locks in &fleet(&server).await {
            let asked = once(locks, night, async |_| import(&runs).await).await;
            rows.push(asked.expect("the server answers"));
            locks.shutdown().await;
        }
        assert_eq!(rows[0], rows[1], "{night}");
    }
    assert_eq!(runs.load(SeqCst), 2);
}

#[tokio::test]
async fn run_that_fails_is_another_process_turn() {
    let server = RedisServer::start();
    let [first, second] = fleet(&server).await;
    let failed = once(&first, "2026-12-01", async |_| Err("no connection")).await;
    assert!(failed.is_err());
    let runs = AtomicU64::new(0);
    let rows = once(&second, "2026-12-01", async |_| import(&runs).await).await;
    assert_eq!(rows.expect("the server answers"), 1);
}

#[cache_lock(prefix = "import", skip_if_locked)]
async fn import_alone(runs: &AtomicU64) -> Result<Option<u64>, LockError> {
    Ok(Some(runs.fetch_add(1, SeqCst) + 1))
}

/// It prevents overlap, and no second run.
#[tokio::test]
async fn skip_if_locked_repeats_run_that_has_ended() {
    let server = RedisServer::start();
    let runs = AtomicU64::new(0);
    for (locks, count) in fleet(&server).await.iter().zip(1..) {
        let run = locks.scope(import_alone(&runs)).await;
        assert_eq!(run.expect("the server answers"), Some(count));
    }
}
