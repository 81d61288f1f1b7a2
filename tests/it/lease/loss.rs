//! A body whose lease is lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use cache_lock::{LockGuard, LockOptions, LostReason, OnLost};

use crate::common::fleet::{Fleet, PATIENT, SHORT_LEASE, loss, on_both_stores};

on_both_stores!(
    body_is_cancelled_where_it_stands,
    body_may_be_left_to_finish,
    body_that_is_ready_has_won,
    body_is_not_polled_after_end,
    loss_before_wait_for_it_is_not_missed,
    held_lease_is_not_lost,
);

/// Longer than the shortest lease.
const TOO_LONG: Duration = Duration::from_millis(200);

/// A lease in which a body begins though its core is blocked for a second, and a time that is longer.
const BEGINS: LockOptions = PATIENT.expire(Duration::from_secs(2)).renew(false);
const LONGER: Duration = Duration::from_millis(2100);

async fn body_is_cancelled_where_it_stands(fleet: Fleet) {
    struct Flag(Arc<AtomicBool>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let locks = fleet.manager().await;
    let (dropped, finished) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
    let flag = Flag(Arc::clone(&dropped));
    let body = async |_: &LockGuard| {
        let _flag = flag;
        std::future::pending::<()>().await;
        finished.store(true, Ordering::SeqCst);
    };
    let error = locks.run("job", &SHORT_LEASE, body).await.expect_err("lost");
    assert_eq!(loss(&error), Some(LostReason::Expired));
    assert!(error.is_lost() && !error.is_retryable());
    assert!(dropped.load(Ordering::SeqCst) && !finished.load(Ordering::SeqCst));
}

async fn body_may_be_left_to_finish(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let body = async |lock: &LockGuard| {
        assert!(!lock.is_lost());
        let reason = lock.lost().await;
        assert!(lock.is_lost());
        let next = there.acquire("job", &PATIENT).await.expect("the lease has ended");
        assert!(next.token() > lock.token());
        (reason, next)
    };
    let options = BEGINS.on_lost(OnLost::Finish);
    let (reason, next) = here.run("job", &options, body).await.expect("its value is returned");
    assert_eq!(reason, LostReason::Expired);
    assert!(here.try_acquire("job", &PATIENT).await.expect("no failure").is_none());
    drop(next);
}

async fn body_that_is_ready_has_won(fleet: Fleet) {
    let locks = fleet.manager().await;
    let body = async |lock: &LockGuard| {
        std::thread::sleep(LONGER);
        lock.is_lost()
    };
    let lost = locks.run("job", &BEGINS, body).await.expect("it is ready in its first poll");
    assert!(lost, "the lease was over at the end of that poll");
}

async fn body_is_not_polled_after_end(fleet: Fleet) {
    let locks = fleet.manager().await;
    let polls = AtomicUsize::new(0);
    let body = async |_: &LockGuard| {
        std::future::poll_fn(|context| {
            polls.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(LONGER);
            // At once, so that no other wake-up comes first.
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        })
        .await;
    };
    let error = locks.run("job", &BEGINS, body).await.expect_err("lost");
    assert_eq!(loss(&error), Some(LostReason::Expired));
    assert_eq!(polls.load(Ordering::SeqCst), 1);
}

async fn loss_before_wait_for_it_is_not_missed(fleet: Fleet) {
    let locks = fleet.manager().await;
    let guard = locks.acquire("job", &SHORT_LEASE).await.expect("free");
    {
        // A wait that is given up half-way loses nothing either.
        let wait = tokio::time::timeout(Duration::from_millis(1), guard.lost());
        let _either: Result<LostReason, _> = wait.await;
    }
    std::thread::sleep(TOO_LONG);
    assert_eq!(guard.lost().await, LostReason::Expired);
    assert_eq!(guard.lost().await, LostReason::Expired, "and what is lost stays lost");
}

async fn held_lease_is_not_lost(fleet: Fleet) {
    let locks = fleet.manager().await;
    let guard = locks.acquire("job", &PATIENT).await.expect("free");
    assert!(tokio::time::timeout(TOO_LONG, guard.lost()).await.is_err());
    assert!(!guard.is_lost() && guard.remaining() > PATIENT_EXPIRE / 2);
    assert!(guard.remaining() < PATIENT_EXPIRE, "the holder's lease ends before the server's");
}

const PATIENT_EXPIRE: Duration = Duration::from_secs(60);
