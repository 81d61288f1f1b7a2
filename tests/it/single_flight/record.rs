//! Values that are recorded for all processes.

use std::{convert::Infallible, time::Duration};

use cache_lock::{LockError, LockManager, OnLost, SingleFlight, SingleFlightError};
use test_support::wait_until;

use super::{HOUR, RECORDED, Work, all, call, calling, sorted};
use crate::common::fleet::{Fleet, PATIENT, SHORT_LEASE, on_both_stores};

on_both_stores!(
    record_is_found_by_others,
    record_ends_with_its_time,
    value_that_is_too_large_is_not_recorded,
    late_holder_records_nothing,
    options_out_of_range_are_refused,
);

async fn record_is_found_by_others(fleet: Fleet) {
    let work = Work::that_is_done();
    for _ in 0..3 {
        let locks = fleet.manager().await;
        for _ in 0..3 {
            assert_eq!(call(locks.clone(), RECORDED, work.clone()).await.ok(), Some(1));
        }
    }
    assert_eq!(work.begun(), 1);
}

async fn record_ends_with_its_time(fleet: Fleet) {
    let locks = fleet.manager().await;
    let work = Work::that_is_done();
    let brief = SingleFlight::new().record(Duration::from_millis(1));
    for number in 1..4 {
        assert_eq!(call(locks.clone(), brief, work.clone()).await.ok(), Some(number));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn value_that_is_too_large_is_not_recorded(fleet: Fleet) {
    let locks = fleet.manager().await;
    let work = Work::that_is_done();
    // Two quotes more, as JSON.
    for (max_size, computed) in [(9, [1, 2]), (10, [3, 3])] {
        let options = RECORDED.max_size(max_size);
        for number in computed {
            let compute = async || {
                let _ = work.compute().await;
                Ok::<_, Infallible>("12345678".to_owned())
            };
            let value = locks.single_flight("room", &options, compute).await;
            assert_eq!(value.ok().as_deref(), Some("12345678"));
            assert_eq!(work.begun(), number, "{max_size}");
        }
    }
}

/// A holder that is stopped for longer than its lease, and finishes its work then.
async fn late_holder_records_nothing(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let options = SingleFlight::new().lock(SHORT_LEASE.on_lost(OnLost::Finish)).record(HOUR);
    let work = Work::that_is_done();
    let late = here.single_flight("room", &options, async || {
        // It waits for the end of the lease.
        assert_eq!(call(there.clone(), RECORDED, work.clone()).await.ok(), Some(1));
        Ok::<_, Infallible>(1000)
    });
    assert_eq!(late.await.ok(), Some(1000));
    assert_eq!(call(here.clone(), RECORDED, work.clone()).await.ok(), Some(1));
}

async fn options_out_of_range_are_refused(fleet: Fleet) {
    let locks = fleet.manager().await;
    let work = Work::that_is_done();
    for (name, options) in [
        ("record", SingleFlight::new().record(Duration::ZERO)),
        ("record", SingleFlight::new().record(Duration::MAX)),
        ("stale", SingleFlight::new().record(HOUR).stale(Duration::MAX)),
        ("expire", RECORDED.lock(PATIENT.expire(Duration::ZERO))),
    ] {
        let error = call(locks.clone(), options, work.clone()).await.expect_err("out of range");
        assert!(
            matches!(
                &error,
                SingleFlightError::Lock(LockError::InvalidOption { option, .. }) if *option == name
            ),
            "{error:?}"
        );
    }
    let error = locks.single_flight("", &RECORDED, async || work.compute().await).await;
    let error = error.expect_err("a key has characters");
    assert!(matches!(&error, SingleFlightError::Lock(LockError::InvalidKey { .. })), "{error:?}");
    assert_eq!(work.begun(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn record_is_json_with_expiry_of_its_ttl() {
    let fleet = Fleet::redis();
    let server = fleet.server().expect("it is on Redis");
    let locks = fleet.manager().await;
    let values = async || Ok::<_, Infallible>(vec![1, 2]);
    let options = RECORDED.stale(HOUR);
    locks.single_flight("house:room", &options, values).await.expect("no error");
    let name = "house:{house:room}:result";
    assert_eq!(server.cli(&["GET", name]), "[1,2]");
    let left: u64 = server.cli(&["PTTL", name]).parse().expect("it has an end");
    assert!(left <= 2 * 3_600_000 && left > 3_600_000, "{left}");
    wait_until("the lock is free", || server.cli(&["EXISTS", "house:room"]) == "0");
}

/// As docs/single-flight.md has it. On one thread, so that nothing is answered before all have asked.
#[tokio::test]
async fn round_trips_are_those_of_docs() {
    let fleet = Fleet::redis();
    let server = fleet.server().expect("it is on Redis");
    let locks = fleet.manager().await;
    let work = Work::that_is_done();
    call(locks.clone(), RECORDED, work.clone()).await.expect("no error");
    // The scripts that so many callers send, and the GETs, those in scripts included.
    let cost = async |options, callers: usize| {
        server.cli(&["CONFIG", "RESETSTAT"]);
        let calls: Vec<_> = (0..callers).map(|_| calling(&locks, options, &work)).collect();
        let (values, _) = sorted(&all(calls).await);
        assert_eq!(values.len(), callers);
        (server.calls("evalsha") + server.calls("eval"), server.calls("get"))
    };
    assert_eq!(cost(RECORDED, 100).await, (0, 1));
    let fresh = RECORDED.stale(Duration::from_secs(60));
    cost(fresh, 1).await; // the server learns the script
    assert_eq!(cost(fresh, 100).await, (1, 1));

    server.cli(&["DEL", "room:{room}:result"]);
    // A look before the lock and one under it; the record and the release look at the lock.
    assert_eq!(cost(RECORDED, 100).await, (3, 4));
}

/// The rights that docs/redis.md gives suffice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_of_readme_suffice() {
    let rules = "resetchannels ~room ~room:* +eval +evalsha +set +get +del +pttl +pexpire +time";
    let server = test_support::RedisServer::builder().user("app", "word", rules).start();
    let locks = LockManager::connect(&server.url_of_user("app")).await.expect("it is let in");
    let work = Work::that_is_done();
    for options in [RECORDED, RECORDED.stale(HOUR), RECORDED] {
        let value = call(locks.clone(), options, work.clone()).await;
        assert!(value.is_ok(), "{value:?}");
    }
}

/// A value is the caller's, whether it can be recorded or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_server_costs_record_and_no_value() {
    let fleet = Fleet::redis();
    let server = fleet.server().expect("it is on Redis");
    let locks = fleet.manager().await;
    let compute = async || {
        server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
        Ok::<_, Infallible>(7)
    };
    let value = locks.single_flight("room", &RECORDED, compute).await;
    assert_eq!(value.ok(), Some(7));
    assert_eq!(server.cli(&["EXISTS", "room:{room}:result"]), "0");
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
}
