//! The future of a function with the attribute.

use super::*;

const ARGUMENT: usize = 4096;

/// Not `Copy`: what is copied stays where it was, too.
struct Large([u8; ARGUMENT]);

#[cache_lock(prefix = "size", key = "{id}", timeout = "2s", expire = "10s", bind = lock)]
async fn locked(id: u64, argument: Large) -> Result<u8, LockError> {
    let _ = lock;
    tokio::task::yield_now().await;
    Ok(argument.0[usize::try_from(id).unwrap_or_default()])
}

async fn plain(id: u64, argument: Large) -> Result<u8, LockError> {
    tokio::task::yield_now().await;
    Ok(argument.0[usize::try_from(id).unwrap_or_default()])
}

#[test]
fn future_is_larger_by_arguments_and_little_more() {
    let locked = size_of_val(&locked(1, Large([0; ARGUMENT])));
    let plain = size_of_val(&plain(1, Large([0; ARGUMENT])));
    assert!(locked <= plain + ARGUMENT + 512, "{locked} against {plain}");
}

#[cache_lock(prefix = "counts")]
async fn counts(runs: &AtomicUsize) -> Result<(), LockError> {
    runs.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

#[test]
fn future_is_send_and_does_not_run_before_it_is_polled() {
    fn send<T: Send>(_: &T) {}
    let runs = AtomicUsize::new(0);
    let future = counts(&runs);
    send(&future);
    drop(future);
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}
