//! Values that a process keeps.

use std::{convert::Infallible, sync::Arc, time::Duration};

use cache_lock::{LockKey, LockManager};

use super::{HOUR, LOCAL, LOCKED, Work, all, call, calling, sorted};
use crate::common::fleet::{Fleet, on_both_stores};

on_both_stores!(value_is_kept, each_process_keeps_its_own);

async fn value_is_kept(fleet: Fleet) {
    let locks = fleet.manager().await;
    let work = Work::that_waits();
    let calls: Vec<_> = (0..10).map(|_| calling(&locks, LOCKED.keep(HOUR), &work)).collect();
    work.let_go();
    let (values, _) = sorted(&all(calls).await);
    assert_eq!(values, [1; 10]);
    // Also for a caller that would not keep it, and for one without a timeout.
    for options in [LOCKED.keep(Duration::MAX), LOCKED] {
        let options = options.lock(super::PATIENT.timeout(Duration::ZERO));
        assert_eq!(call(locks.clone(), options, work.clone()).await.ok(), Some(1));
    }
    // And for no caller of another kind.
    assert_eq!(call(locks.clone(), LOCAL, work.clone()).await.ok(), Some(2));
    assert_eq!(locks.in_hand().flights, 1);
}

async fn each_process_keeps_its_own(fleet: Fleet) {
    let work = Work::that_is_done();
    for process in 1..4 {
        let locks = fleet.manager().await;
        for _ in 0..3 {
            let value = call(locks.clone(), LOCAL.keep(Duration::MAX), work.clone()).await;
            assert_eq!(value.ok(), Some(process));
        }
    }
}

#[tokio::test]
async fn error_is_not_kept() {
    let locks = LockManager::in_memory();
    let work = Work::that_is_done().failing(2);
    let options = LOCAL.keep(HOUR).share_errors();
    for expected in [None, None, Some(3), Some(3)] {
        assert_eq!(call(locks.clone(), options, work.clone()).await.ok(), expected);
    }
}

#[tokio::test]
async fn value_whose_time_is_over_is_dropped() {
    let locks = LockManager::in_memory();
    let value = Arc::new(());
    let brief = LOCAL.keep(Duration::from_millis(1));
    for number in 0..10_000_u32 {
        let key = LockKey::new("room").part(number);
        let kept = locks.single_flight(key, &brief, async || Ok::<_, Infallible>(value.clone()));
        kept.await.expect("no error");
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    let work = Work::that_is_done();
    assert_eq!(call(locks.clone(), LOCAL, work.clone()).await.ok(), Some(1));
    assert_eq!(locks.in_hand().flights, 0);
    assert_eq!(Arc::strong_count(&value), 1);

    // It is computed anew.
    assert_eq!(call(locks.clone(), brief, work.clone()).await.ok(), Some(2));
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(call(locks.clone(), brief, work.clone()).await.ok(), Some(3));
}
