//! A caller's runtime without I/O uses the connection of the manager's thread.

use std::time::Duration;

use cache_lock::{InHand, LockKey, LockManager, LockOptions, ReleaseOutcome};
use test_support::{RedisServer, wait_until};
use tokio::runtime::Builder;

#[test]
fn locks_are_taken_extended_and_released() {
    let server = RedisServer::start();
    let locks = LockManager::builder().connect_lazy(&server.url()).expect("a URL");
    for _ in 0..2 {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            locks.ping().await.expect("the server answers");
            for number in 0..3 {
                let key = LockKey::new("room").part(number);
                let guard = locks.acquire(key, &LockOptions::new()).await.expect("it is free");
                guard.extend(Duration::from_secs(60)).await.expect("it is ours");
                assert_eq!(guard.release().await.ok(), Some(ReleaseOutcome::Released));
            }
            let value = locks.try_acquire("room", &LockOptions::new()).await;
            drop(value.expect("the server answers").expect("it is free"));
        });
        let connections = |locks: &LockManager| locks.in_hand().connections;
        assert_eq!(connections(&locks), 1, "that of the thread");
    }
    assert_eq!(locks.stats().failed, 0);
    wait_until("nothing is in hand", || {
        let InHand { leases, tasks, keys, .. } = locks.in_hand();
        (leases, tasks, keys) == (0, 0, 0)
    });
}
