//! Records in the memory store.

use std::{convert::Infallible, time::Duration};

use cache_lock::{LockKey, LockManager, MemoryStore, SingleFlight};

#[tokio::test]
async fn records_that_are_over_are_removed() {
    let store = MemoryStore::new();
    let locks = LockManager::builder().in_memory(store.clone()).expect("the settings are valid");
    let record = async |number: u32, ttl| {
        let options = SingleFlight::new().record(ttl);
        let key = LockKey::new("room").part(number);
        let value = locks.single_flight(key, &options, async || Ok::<_, Infallible>(number));
        assert_eq!(value.await.ok(), Some(number));
    };
    for number in 0..10_000 {
        record(number, Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    record(0, Duration::from_secs(3600)).await;
    assert_eq!(store.results(), 1);
    assert!(store.is_empty(), "no lock is held");
    assert_eq!(locks.in_hand().flights, 0);
}
