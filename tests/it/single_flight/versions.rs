//! Programs of different types or versions that share a key, as in a rolling deploy.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use cache_lock::{LockManager, SingleFlight, single_flight::Recorded};

use super::{HOUR, RECORDED, Work, call};
use crate::common::fleet::{Fleet, on_both_stores};

on_both_stores!(
    each_program_computes_once_beside_record_it_cannot_read,
    each_program_computes_once_beside_stale_record_it_cannot_read,
    own_value_lasts_no_longer_than_record,
    own_value_lasts_no_longer_than_its_ttl,
    each_version_has_its_own_record,
);

/// The other program, whose values are texts.
async fn text(
    locks: &LockManager,
    options: SingleFlight<Recorded>,
    computed: &AtomicUsize,
) -> String {
    let compute = async || {
        let number = computed.fetch_add(1, Ordering::SeqCst) + 1;
        Ok::<_, Infallible>(format!("text {number}"))
    };
    locks.single_flight("room", &options, compute).await.expect("no error")
}

async fn each_computes_once(fleet: &Fleet, options: SingleFlight<Recorded>) {
    let texts = AtomicUsize::new(0);
    let numbers = Work::that_is_done();
    let (old, new) = (fleet.manager().await, fleet.manager().await);
    for _ in 0..100 {
        assert_eq!(text(&old, options, &texts).await, "text 1");
        assert_eq!(call(new.clone(), options, numbers.clone()).await.ok(), Some(1));
    }
    assert_eq!((texts.load(Ordering::SeqCst), numbers.begun()), (1, 1));
    // The first record is left alone, so another old process finds it.
    assert_eq!(text(&fleet.manager().await, options, &texts).await, "text 1");
    if let Some(server) = fleet.server() {
        assert_eq!(server.cli(&["GET", "room:{room}:result"]), "\"text 1\"");
    }
}

async fn each_program_computes_once_beside_record_it_cannot_read(fleet: Fleet) {
    each_computes_once(&fleet, RECORDED).await;
}

async fn each_program_computes_once_beside_stale_record_it_cannot_read(fleet: Fleet) {
    each_computes_once(&fleet, RECORDED.stale(HOUR)).await;
}

async fn own_value_lasts_no_longer_than_record(fleet: Fleet) {
    let texts = AtomicUsize::new(0);
    let (old, new) = (fleet.manager().await, fleet.manager().await);
    text(&old, SingleFlight::new().record(Duration::from_millis(500)), &texts).await;
    let work = Work::that_is_done();
    call(new.clone(), RECORDED, work.clone()).await.expect("no error");
    tokio::time::sleep(Duration::from_millis(600)).await;
    // Whatever came first, the record of this hour is the new program's.
    call(new.clone(), RECORDED, work.clone()).await.expect("no error");
    let computed = work.begun();
    let other = fleet.manager().await;
    assert_eq!(call(other, RECORDED, work.clone()).await.ok(), Some(computed));
}

async fn own_value_lasts_no_longer_than_its_ttl(fleet: Fleet) {
    let texts = AtomicUsize::new(0);
    let locks = fleet.manager().await;
    text(&locks, RECORDED, &texts).await;
    let work = Work::that_is_done();
    let brief = SingleFlight::new().record(Duration::from_millis(1));
    for number in 1..4 {
        assert_eq!(call(locks.clone(), brief, work.clone()).await.ok(), Some(number));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn each_version_has_its_own_record(fleet: Fleet) {
    let texts = AtomicUsize::new(0);
    let numbers = Work::that_is_done();
    let second = RECORDED.version(2);
    for _ in 0..3 {
        // One process computes for all of its version.
        let locks = fleet.manager().await;
        for _ in 0..3 {
            assert_eq!(text(&locks, RECORDED, &texts).await, "text 1");
            assert_eq!(call(locks.clone(), second, numbers.clone()).await.ok(), Some(1));
        }
    }
    assert_eq!((texts.load(Ordering::SeqCst), numbers.begun()), (1, 1));
    // Values of one type do not meet either.
    assert_eq!(text(&fleet.manager().await, RECORDED.version(3), &texts).await, "text 2");
    if let Some(server) = fleet.server() {
        assert_eq!(server.cli(&["GET", "room:{room}:result"]), "\"text 1\"");
        assert_eq!(server.cli(&["GET", "room:{room}:v2:result"]), "1");
        assert_eq!(server.cli(&["GET", "room:{room}:v3:result"]), "\"text 2\"");
    }
}
