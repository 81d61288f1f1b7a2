//! G5: a caller that was granted the lock, or requests it, and is not polled, stops no other caller.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use cache_lock::{BackendErrorKind, LockError, LockGuard, LockManager, LockOptions};
use test_support::{RedisServer, wait_until};

use super::{
    Acquiring, LONG, SECOND, acquiring, poll_once, wait_until_clean, wait_until_idle,
    wait_until_listed,
};
use crate::common::{
    fleet::{Fleet, on_both_stores},
    monitor::Monitor,
};

on_both_stores! {
    grant_to_unpolled_waiter_passes_on,
    grant_to_unpolled_waiter_passes_to_other_manager,
    unpolled_waiters_stop_no_later_waiter,
    unpolled_request_stops_no_other_caller,
    unpolled_release_stops_no_other_caller,
    blocked_thread_stops_no_other_caller,
    waiter_polled_after_its_timeout_is_stalled,
}

async fn taken(locks: &LockManager) -> LockGuard {
    locks.acquire("room", &LONG).await.expect("the lock is free")
}

async fn release(guard: LockGuard) {
    guard.release().await.expect("the store answers");
}

/// A caller that was left unpolled gets the lock when it is polled again.
async fn comes_back(unpolled: Acquiring, locks: &LockManager) {
    release(unpolled.await.expect("the lock is free")).await;
    wait_until_idle(locks);
}

async fn grant_to_unpolled_waiter_passes_on(fleet: Fleet) {
    let locks = fleet.manager().await;
    let guard = taken(&locks).await;
    let mut unpolled = acquiring(&locks, LONG);
    poll_once(&mut unpolled);
    release(guard).await;
    release(taken(&locks).await).await;
    comes_back(unpolled, &locks).await;
}

/// That is not the server's fault, and the error says so.
async fn waiter_polled_after_its_timeout_is_stalled(fleet: Fleet) {
    let locks = fleet.build(LockManager::builder().attempt_timeout(SECOND)).await;
    let guard = taken(&locks).await;
    let mut unpolled = acquiring(&locks, LONG.timeout(SECOND * 3 / 2));
    poll_once(&mut unpolled);
    release(guard).await;
    release(taken(&locks).await).await;
    tokio::time::sleep(SECOND * 5 / 2).await;
    let error = unpolled.await.expect_err("its time is over");
    let LockError::Backend { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), BackendErrorKind::Stalled, "{error}");
    wait_until_idle(&locks);
}

async fn grant_to_unpolled_waiter_passes_to_other_manager(fleet: Fleet) {
    let (locks, other) = (fleet.manager().await, fleet.manager().await);
    let guard = taken(&locks).await;
    let mut unpolled = acquiring(&locks, LONG);
    poll_once(&mut unpolled);
    release(guard).await;
    release(taken(&other).await).await;
    comes_back(unpolled, &locks).await;
    wait_until_idle(&other);
}

async fn unpolled_waiters_stop_no_later_waiter(fleet: Fleet) {
    let locks = fleet.manager().await;
    let guard = taken(&locks).await;
    let mut unpolled: Vec<_> = (0..10).map(|_| acquiring(&locks, LONG)).collect();
    unpolled.iter_mut().for_each(poll_once);
    let last = acquiring(&locks, LONG);
    release(guard).await;
    release(last.await.expect("the lock is free")).await;
    for waiter in unpolled {
        release(waiter.await.expect("the lock is free")).await;
    }
    wait_until_idle(&locks);
}

async fn unpolled_request_stops_no_other_caller(fleet: Fleet) {
    // In memory the first poll has the answer.
    let Fleet::Redis(_) = fleet else { return };
    let (locks, other) = (fleet.manager().await, fleet.manager().await);
    let unpolled = loop {
        let mut unpolled = acquiring(&locks, LONG);
        // On a busy machine the answer may be there before the poll has ended.
        match unpolled.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => break unpolled,
            Poll::Ready(guard) => release(guard.expect("the lock is free")).await,
        }
    };
    release(taken(&other).await).await;
    release(taken(&locks).await).await;
    comes_back(unpolled, &locks).await;
}

async fn unpolled_release_stops_no_other_caller(fleet: Fleet) {
    let Fleet::Redis(_) = fleet else { return };
    let (locks, other) = (fleet.manager().await, fleet.manager().await);
    let releasing = loop {
        let mut releasing = Box::pin(taken(&locks).await.release());
        // On a busy machine the answer may be there before the poll has ended.
        if releasing.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            break releasing;
        }
    };
    let mut unpolled = acquiring(&locks, LONG);
    poll_once(&mut unpolled);
    release(taken(&other).await).await;
    release(taken(&locks).await).await;
    releasing.await.expect("the server answers");
    comes_back(unpolled, &locks).await;
}

/// Its runtime has no other thread, so that its connection stands still, too.
async fn blocked_thread_stops_no_other_caller(fleet: Fleet) {
    static BLOCKED: AtomicBool = AtomicBool::new(false);
    static FREE: AtomicBool = AtomicBool::new(false);
    let Fleet::Redis(_) = fleet else { return };
    let (locks, other) = (fleet.manager().await, fleet.manager().await);
    let blocked = locks.clone();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            release(taken(&blocked).await).await;
            let mut unpolled = acquiring(&blocked, LONG);
            poll_once(&mut unpolled);
            BLOCKED.store(true, Ordering::SeqCst);
            wait_until("the others had the lock", || FREE.load(Ordering::SeqCst));
            comes_back(unpolled, &blocked).await;
        });
    });
    wait_until("it is blocked", || BLOCKED.load(Ordering::SeqCst));
    release(taken(&other).await).await;
    release(taken(&locks).await).await;
    FREE.store(true, Ordering::SeqCst);
    thread.join().expect("no panic");
}

/// A manager whose only waiter is left unpolled is granted the lock, by push.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grant_by_push_to_unpolled_waiter_passes_on() {
    let fleet = Fleet::redis();
    let server = fleet.server().expect("it is one");
    let (holder, locks, other) =
        (fleet.manager().await, fleet.manager().await, fleet.manager().await);
    let guard = taken(&holder).await;
    let mut unpolled = acquiring(&locks, LONG);
    poll_once(&mut unpolled);
    wait_until_listed(server, 1);
    let waiting = tokio::spawn(acquiring(&other, LONG));
    wait_until_listed(server, 2);
    release(guard).await;
    release(waiting.await.expect("no panic").expect("the lock is free")).await;
    comes_back(unpolled, &locks).await;
    wait_until_clean(server);
}

/// A lease of which more than a third is used up is extended as soon as its section begins, and not
/// before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lease_of_unpolled_waiter_is_not_extended() {
    const EXPIRE: LockOptions = LONG.expire(SECOND.saturating_mul(6));
    let fleet = Fleet::redis();
    let server = fleet.server().expect("it is one");
    let locks = fleet.manager().await;
    let guard = locks.acquire("room", &EXPIRE.renew(false)).await.expect("it is free");
    let mut unpolled = acquiring(&locks, EXPIRE);
    poll_once(&mut unpolled);
    tokio::time::sleep(SECOND * 5 / 2).await;
    let monitor = Monitor::of(server);
    release(guard).await;
    // The lease is passed on, and released for want of another waiter.
    wait_until_clean(server);
    let calls = monitor.calls(server);
    assert!(calls.iter().all(|call| call.keys > 1), "{calls:?}");
    assert!(calls.iter().any(|call| call.is_release()), "{calls:?}");

    // The same with a caller that is polled.
    let guard = locks.acquire("room", &EXPIRE.renew(false)).await.expect("it is free");
    let waiting = tokio::spawn(acquiring(&locks, EXPIRE));
    tokio::time::sleep(SECOND * 5 / 2).await;
    release(guard).await;
    let guard = waiting.await.expect("no panic").expect("it is free");
    wait_until("it is extended", || monitor.calls(server).iter().any(|call| call.keys == 1));
    release(guard).await;
    comes_back(unpolled, &locks).await;
}

/// The same with a server that may take a minute for an answer: no caller waits that long for a request
/// on a connection that stands still.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocked_thread_stops_no_caller_of_slow_server() {
    let server = RedisServer::start();
    let builder = LockManager::builder().attempt_timeout(Duration::from_secs(60));
    let locks = builder.connect(&server.url()).await.expect("the server runs");
    let (blocked, free) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let thread = std::thread::spawn({
        let (locks, blocked, free) = (locks.clone(), Arc::clone(&blocked), Arc::clone(&free));
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                release(taken(&locks).await).await;
                let mut unpolled = acquiring(&locks, LONG);
                poll_once(&mut unpolled);
                blocked.store(true, Ordering::SeqCst);
                wait_until("the other had the lock", || free.load(Ordering::SeqCst));
            });
        }
    });
    wait_until("it is blocked", || blocked.load(Ordering::SeqCst));
    release(taken(&locks).await).await;
    free.store(true, Ordering::SeqCst);
    thread.join().expect("no panic");
}
