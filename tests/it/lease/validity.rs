//! A lease counts from the send time of its request, since the holder cannot know when the server
//! began to count.

use std::time::{Duration, Instant};

use cache_lock::{BackendErrorKind, LockError, LockManager};
use test_support::{Direction, Fault, Proxy, RedisServer, wait_until};

use super::proxied;
use crate::common::fleet::{PATIENT, guarded, records};

/// How long the answers of the server are under way.
const DELAY: Duration = Duration::from_secs(1);
const EXPIRE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn way_of_answer_is_taken_off_lease() {
    guarded(async {
        let server = RedisServer::start();
        let proxy = Proxy::start(server.port());
        let builder = LockManager::builder().attempt_timeout(EXPIRE / 2);
        let locks = builder.connect(&server.url_through(proxy.port())).await;
        let locks = locks.expect("the server is there");
        proxy.set(Direction::Replies, Fault::Delay(DELAY));

        let asked = Instant::now();
        let guard = locks.acquire("job", &PATIENT.expire(EXPIRE).renew(false)).await;
        let guard = guard.expect("free");
        assert!(Instant::now() >= asked + DELAY, "the proxy has delayed the answer");
        assert!(guard.remaining() <= EXPIRE - DELAY, "{:?}", guard.remaining());

        guard.extend(2 * EXPIRE).await.expect("held");
        assert!(guard.remaining() > EXPIRE);
        assert!(guard.remaining() <= 2 * EXPIRE - DELAY, "{:?}", guard.remaining());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_slower_than_lease_grant_nothing() {
    guarded(async {
        let (server, proxy, locks) = proxied().await;
        let options = PATIENT.expire(Duration::from_millis(300)).timeout(2 * DELAY);
        drop(locks.acquire("other", &PATIENT).await.expect("free"));
        proxy.set(Direction::Replies, Fault::Delay(DELAY));
        let error = locks.acquire("job", &options).await.expect_err("no answer is of use");
        let LockError::Backend { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.kind(), BackendErrorKind::Timeout);
        proxy.pass();
        wait_until("all is given back", || locks.in_hand().tasks == 0 && records(&server) == 0);
    })
    .await;
}

/// The answer is there in time, and its reader is not: its thread is blocked until the lease is
/// over. The connection is served by another thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn answer_that_is_read_too_late_grants_nothing() {
    guarded(async {
        let (server, proxy, locks) = proxied().await;
        let expire = Duration::from_secs(2);
        let options = PATIENT.expire(expire).timeout(Duration::ZERO);
        // So that the server knows the script, and one request is all it takes.
        locks.acquire("other", &PATIENT).await.expect("free").release().await.expect("no failure");
        server.cli(&["CONFIG", "RESETSTAT"]);
        // So that it is not read at once.
        proxy.set(Direction::Replies, Fault::Delay(Duration::from_millis(50)));
        let acquiring = locks.acquire("job", &options);
        let (acquired, ()) = tokio::join!(biased; acquiring, async {
            wait_until("it is granted", || server.calls("set") > 0);
            std::thread::sleep(expire * 9 / 8);
        });
        let error = acquired.expect_err("its lease is over");
        let LockError::Backend { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.kind(), BackendErrorKind::Stalled);
        wait_until("all is given back", || locks.in_hand().tasks == 0 && records(&server) == 0);
    })
    .await;
}
