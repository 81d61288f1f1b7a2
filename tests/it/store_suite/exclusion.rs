//! At most one holder per key.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use cache_lock::{LockGuard, LockKey, LockManager, LockOptions, ReleaseOutcome};
use test_support::wait_until;

use crate::common::fleet::{Fleet, PATIENT, SHORT_LEASE, on_both_stores};

on_both_stores!(
    critical_sections_neither_overlap_nor_lose_updates,
    keys_do_not_block_each_other,
    try_acquire_does_not_wait,
    contention_is_told_from_other_failures,
    lock_that_was_let_go_is_free,
    ended_lease_is_free_though_its_holder_is_there,
    nothing_is_in_hand_when_nothing_is_held,
    background_release_is_release,
);

/// A counter that loses updates where two add to it at once.
#[derive(Default)]
struct Fragile {
    count: AtomicU64,
    busy: AtomicBool,
    overlaps: AtomicU64,
}

impl Fragile {
    async fn add_one(&self) {
        if self.busy.swap(true, Ordering::SeqCst) {
            self.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        let seen = self.count.load(Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.count.store(seen + 1, Ordering::SeqCst);
        self.busy.store(false, Ordering::SeqCst);
    }
}

async fn critical_sections_neither_overlap_nor_lose_updates(fleet: Fleet) {
    const MANAGERS: u64 = 3;
    const TASKS: u64 = 8;
    const ROUNDS: u64 = 8;
    let fragile = Arc::new(Fragile::default());
    let mut tasks = Vec::new();
    for _ in 0..MANAGERS {
        let locks = fleet.manager().await;
        for _ in 0..TASKS {
            let (locks, fragile) = (locks.clone(), Arc::clone(&fragile));
            tasks.push(tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    let body = async |_: &LockGuard| fragile.add_one().await;
                    locks.run("counter", &PATIENT, body).await.expect("it gets its turn");
                }
            }));
        }
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!(fragile.overlaps.load(Ordering::SeqCst), 0);
    assert_eq!(fragile.count.load(Ordering::SeqCst), MANAGERS * TASKS * ROUNDS);
    assert_eq!(fleet.records(), 0);
}

async fn keys_do_not_block_each_other(fleet: Fleet) {
    let locks = fleet.manager().await;
    let room = |number: u32| LockKey::new("room").part(number);
    let once = PATIENT.timeout(std::time::Duration::ZERO);
    let one = locks.acquire(room(1), &once).await.expect("free");
    let two = locks.acquire(room(2), &once).await.expect("another key");
    assert_eq!(fleet.records(), 2);
    drop((one, two));
}

async fn try_acquire_does_not_wait(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let guard = here.try_acquire("job", &PATIENT).await.expect("no failure").expect("it is free");
    for locks in [&here, &there] {
        // Within the guard of the test, and so without the 60 s that the options speak of.
        assert!(locks.try_acquire("job", &PATIENT).await.expect("no failure").is_none());
    }
    assert_eq!(guard.release().await.expect("no failure"), ReleaseOutcome::Released);
    assert!(there.try_acquire("job", &PATIENT).await.expect("no failure").is_some());
}

async fn contention_is_told_from_other_failures(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let _guard = here.acquire("job", &PATIENT).await.expect("free");
    let options = LockOptions::new().timeout(std::time::Duration::from_millis(50));
    let error = there.acquire("job", &options).await.expect_err("held");
    assert!(error.is_contended() && error.is_retryable() && !error.is_lost(), "{error}");
    assert_eq!(error.key().map(LockKey::as_str), Some("job"));
    wait_until("it is off the waiting list", || {
        let hand = there.in_hand();
        (hand.keys, hand.leases, hand.tasks) == (0, 0, 0)
    });
}

async fn lock_that_was_let_go_is_free(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let once = PATIENT.timeout(std::time::Duration::ZERO);
    for _ in 0..10 {
        let guard = here.acquire("job", &once).await.expect("the other has released it");
        assert_eq!(guard.release().await.expect("no failure"), ReleaseOutcome::Released);
        let body = async |_: &LockGuard| ();
        there.run("job", &once, body).await.expect("the other has released it");
    }
    // A drop does not wait, so the next one may have to.
    drop(here.acquire("job", &once).await.expect("free"));
    drop(there.acquire("job", &PATIENT).await.expect("the drop releases it"));
    wait_until("the locks are released", || fleet.records() == 0);
}

async fn ended_lease_is_free_though_its_holder_is_there(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let forgotten = here.acquire("job", &SHORT_LEASE).await.expect("free");
    let guard = there.acquire("job", &PATIENT).await.expect("it ends by itself");
    assert!(forgotten.is_lost(), "it was over for its holder before it was for the next one");
    assert!(guard.token() > forgotten.token());
}

async fn nothing_is_in_hand_when_nothing_is_held(fleet: Fleet) {
    let locks = fleet.manager().await;
    let mut guards = Vec::new();
    for number in 0..50 {
        guards
            .push(locks.acquire(LockKey::new("room").part(number), &PATIENT).await.expect("free"));
    }
    assert_eq!(locks.in_hand().leases, 50);
    assert_eq!(fleet.records(), 50);
    for (number, guard) in guards.into_iter().enumerate() {
        if number % 2 == 0 {
            assert_eq!(guard.release().await.expect("no failure"), ReleaseOutcome::Released);
        }
    }
    assert_eq!(locks.in_hand().leases, 0, "at once, and not when they would have been renewed");
    wait_until("nothing is in hand", || idle(&locks));
    assert_eq!(fleet.records(), 0);
}

async fn background_release_is_release(fleet: Fleet) {
    let locks = fleet.build(LockManager::builder().background_release(true)).await;
    for round in 0..20 {
        let body = async |_: &LockGuard| round;
        assert_eq!(locks.run("job", &PATIENT, body).await.expect("its turn comes"), round);
    }
    wait_until("nothing is in hand", || idle(&locks));
    assert_eq!(fleet.records(), 0);
}

fn idle(locks: &LockManager) -> bool {
    let in_hand = locks.in_hand();
    (in_hand.leases, in_hand.tasks, in_hand.timers) == (0, 0, 0)
}
