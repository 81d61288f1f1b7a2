//! A job that a fleet does once a night, though the timer of each process goes off.
//!
//! `skip_if_locked` is not enough: it keeps two runs from overlapping. A process whose timer goes off after
//! the first run has ended finds the lock free, and would run the job again.
//!
//! `cargo run --example once_a_night --features serde` uses a store in memory; with `REDIS_URL` set, a Redis
//! server, and then the second start within the night finds the job done.

use std::{env, time::Duration};

use cache_lock::{
    FencingToken, LockError, LockKey, LockManager, LockOptions, MemoryStore, SingleFlight,
    SingleFlightError, single_flight::Recorded,
};

const HOUR: Duration = Duration::from_secs(3600);

/// The record lasts until no timer of the night can go off any more. A process that waits takes over
/// when the one that imports fails or dies.
const ONCE: SingleFlight<Recorded> =
    SingleFlight::new().lock(LockOptions::new().timeout(HOUR)).record(HOUR.saturating_mul(20));

/// The rows that were imported in this night, by this process or another one.
pub(crate) async fn once<E>(
    locks: &LockManager,
    night: &str,
    import: impl AsyncFnOnce(FencingToken) -> Result<u64, E>,
) -> Result<u64, SingleFlightError<E>> {
    locks.single_flight_fenced(LockKey::new("import").part(night), &ONCE, import).await
}

#[tokio::main]
async fn main() -> Result<(), SingleFlightError<LockError>> {
    let store = MemoryStore::new();
    for process in ["first", "second", "third"] {
        let locks = match env::var("REDIS_URL") {
            Ok(url) => LockManager::connect(&url).await?,
            Err(_) => LockManager::builder().in_memory(store.clone())?,
        };
        let rows = once(&locks, "2026-12-01", async |token| {
            println!("the {process} process imports; its writes carry the token {token}");
            Ok(1200)
        });
        println!("{} rows, knows the {process} process", rows.await?);
        locks.shutdown().await;
    }
    Ok(())
}
