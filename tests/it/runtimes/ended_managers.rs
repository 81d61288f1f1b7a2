//! A manager that ends while its server is away leaves no task on its callers' runtimes.

use std::{net::TcpListener, time::Duration};

use cache_lock::{LockManager, LockOptions};
use test_support::wait_until;
use tokio::runtime::Builder;

/// Managers that end while a connection is being opened, in a pause or in an attempt.
fn assert_nothing_is_left(port: u16) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let once = LockOptions::new().timeout(Duration::ZERO);
    for _ in 0..10 {
        let quick = LockManager::builder().attempt_timeout(Duration::from_millis(50));
        let locks = quick.connect_lazy(&format!("redis://127.0.0.1:{port}")).expect("a URL");
        let acquiring = runtime.block_on(locks.acquire("room", &once));
        drop(acquiring.expect_err("there is no server"));
    }
    wait_until("all tasks have ended", || runtime.metrics().num_alive_tasks() == 0);
}

#[test]
fn no_task_is_left_where_server_refuses_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    drop(listener);
    assert_nothing_is_left(port);
}

#[test]
fn no_task_is_left_where_server_is_mute() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    assert_nothing_is_left(listener.local_addr().expect("it is bound").port());
}
