//! Guards that are dropped where nothing can be awaited. The lock is free afterwards all the same.

use std::{cell::RefCell, thread};

use cache_lock::{LockGuard, LockManager};
use test_support::wait_until;
use tokio::sync::oneshot;

use super::{current_thread, multi_thread, on_both_stores_outside_of_tokio};
use crate::common::fleet::{Fleet, PATIENT};

on_both_stores_outside_of_tokio!(
    drop_outside_of_runtime_frees_lock,
    drop_in_panicking_task_frees_lock,
    drop_in_runtime_that_ends_frees_lock,
    drop_in_thread_that_ends_frees_lock,
);

fn manager(fleet: &Fleet) -> LockManager {
    current_thread().block_on(fleet.manager())
}

fn wait_until_free(fleet: &Fleet, locks: &LockManager) {
    wait_until("the drop has done its work", || {
        locks.in_hand().leases == 0 && locks.in_hand().tasks == 0
    });
    assert_eq!(fleet.records(), 0);
}

fn drop_outside_of_runtime_frees_lock(fleet: Fleet) {
    let locks = manager(&fleet);
    let guard = current_thread().block_on(locks.acquire("job", &PATIENT)).expect("free");
    drop(guard);
    wait_until_free(&fleet, &locks);
}

fn drop_in_panicking_task_frees_lock(fleet: Fleet) {
    let locks = manager(&fleet);
    for make in [current_thread, multi_thread] {
        let runtime = make();
        let own = locks.clone();
        let task = runtime.spawn(async move {
            let _guard = own.acquire("job", &PATIENT).await.expect("free");
            panic!("on purpose");
        });
        assert!(runtime.block_on(task).expect_err("it panics").is_panic());
        wait_until_free(&fleet, &locks);

        let own = locks.clone();
        let task = runtime.spawn(async move {
            let body = async |_: &LockGuard| panic!("on purpose");
            own.run("job", &PATIENT, body).await
        });
        assert!(runtime.block_on(task).expect_err("it panics").is_panic());
        wait_until_free(&fleet, &locks);
    }
}

fn drop_in_runtime_that_ends_frees_lock(fleet: Fleet) {
    let locks = manager(&fleet);
    for make in [current_thread, multi_thread] {
        for background in [false, true] {
            let runtime = make();
            let (held, when_held) = oneshot::channel();
            let own = locks.clone();
            runtime.spawn(async move {
                let body = async |_: &LockGuard| {
                    held.send(()).expect("the test waits");
                    std::future::pending::<()>().await;
                };
                own.run("job", &PATIENT, body).await
            });
            runtime.block_on(when_held).expect("the body runs");
            assert_eq!(fleet.records(), 1);
            if background {
                runtime.shutdown_background();
            } else {
                drop(runtime);
            }
            wait_until_free(&fleet, &locks);
        }
    }
}

thread_local! {
    static KEPT: RefCell<Option<LockGuard>> = const { RefCell::new(None) };
}

/// When locals are dropped, other locals may be gone already; a panic would end the process.
fn drop_in_thread_that_ends_frees_lock(fleet: Fleet) {
    let locks = manager(&fleet);
    let own = locks.clone();
    let thread = thread::spawn(move || {
        let guard = pollster::block_on(own.acquire("job", &PATIENT)).expect("free");
        KEPT.with_borrow_mut(|kept| *kept = Some(guard));
    });
    thread.join().expect("no panic");
    wait_until_free(&fleet, &locks);
}
