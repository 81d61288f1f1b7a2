//! A waker is code of the caller's. Wakers that panic end no connection and not the process: the
//! other callers of the connection get their locks.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Wake, Waker},
    time::Duration,
};

use cache_lock::{LockKey, LockManager, LockOptions};
use test_support::{Direction, Fault, Proxy, RedisServer};

use crate::common::{
    fleet::guarded,
    waiters::{wait_until_clean, wait_until_idle},
};

const PATIENT: LockOptions =
    LockOptions::new().timeout(Duration::from_secs(50)).expire(Duration::from_secs(60));

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker of the caller's");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wakers_that_panic_end_no_connection() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let locks = LockManager::connect(&server.url_through(proxy.port())).await.expect("it runs");
    guarded(locks.run("first", &PATIENT, async |_| ())).await.expect("it is free");
    let connections = proxy.accepted();
    proxy.set(Direction::Replies, Fault::Hold);
    let waker = Waker::from(Arc::new(Panics));
    let mut panicking: Vec<Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
    let mut others = Vec::new();
    // More than are in flight at first, of both kinds.
    for number in 0..400 {
        let locks = locks.clone();
        let acquiring = async move {
            let key = LockKey::new("room").part(number);
            locks.run(key, &PATIENT, async |_| ()).await.expect("it is free");
        };
        if number % 4 == 0 {
            others.push(tokio::spawn(acquiring));
        } else {
            panicking.push(Box::pin(acquiring));
        }
    }
    for acquiring in &mut panicking {
        assert!(acquiring.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    proxy.pass();
    for other in others {
        guarded(other).await.expect("it gets its lock");
    }
    for acquiring in panicking {
        guarded(acquiring).await;
    }
    wait_until_idle(&locks);
    wait_until_clean(&server);
    // The thread of the manager may have opened its own meanwhile.
    assert!(proxy.accepted() <= connections + 1, "no connection has ended");
}
