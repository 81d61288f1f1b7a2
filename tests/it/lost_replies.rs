//! G6 over a bad network: a request whose answer was not seen is recognised or taken back.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use cache_lock::{
    BackendErrorKind, InHand, LockError, LockGuard, LockManager, LockOptions, ReleaseOutcome,
};
use test_support::{Direction, Fault, Proxy, RedisServer, wait_until};

use crate::common::{
    cases::at_once,
    monitor::{Call, Monitor},
};

/// Long enough that a record which goes away was taken away.
const OPTIONS: LockOptions =
    LockOptions::new().expire(Duration::from_secs(3600)).timeout(Duration::from_secs(60));

struct Network {
    server: RedisServer,
    proxy: Proxy,
    locks: LockManager,
    monitor: Monitor,
}

impl Network {
    /// A manager with this attempt timeout and an open connection through a proxy.
    async fn new(attempt: Duration) -> Self {
        let server = RedisServer::start();
        let proxy = Proxy::start(server.port());
        let url = server.url_through(proxy.port());
        let locks = LockManager::builder().attempt_timeout(attempt).connect(&url).await;
        let locks = locks.expect("the server runs");
        let guard = locks.acquire("warm", &OPTIONS).await.expect("it is free");
        // Its answer may take longer than an attempt on a busy machine; it is tried again then.
        let _ = guard.release().await;
        wait_until("it is released", || server.cli(&["EXISTS", "warm"]) == "0");
        let monitor = Monitor::of(&server);
        Self { server, proxy, locks, monitor }
    }

    fn record(&self) -> String {
        self.server.cli(&["GET", "room"])
    }

    /// Nothing is left, and the lock can be taken.
    async fn assert_clean(&self) {
        wait_until("no record is left", || self.record() == "(nil)");
        wait_until("nothing is in hand", || {
            let InHand { leases, tasks, timers, .. } = self.locks.in_hand();
            (leases, tasks, timers) == (0, 0, 0)
        });
        let guard = self.locks.acquire("room", &OPTIONS).await.expect("it is free");
        released(guard).await;
        wait_until("no record is left", || self.record() == "(nil)");
    }
}

/// Extends a lock, as often as the answer takes longer than an attempt.
async fn extended(guard: &LockGuard) {
    loop {
        match guard.extend(Duration::from_secs(7200)).await {
            Err(error @ LockError::Backend { .. }) => assert!(error.is_retryable(), "{error}"),
            outcome => return outcome.expect("the lock is ours"),
        }
    }
}

/// Releases a lock that is still ours. One whose answer takes longer than an attempt is
/// released in the background.
async fn released(guard: LockGuard) {
    match guard.release().await {
        Err(error) => assert!(error.is_retryable(), "{error}"),
        released => assert_eq!(released.ok(), Some(ReleaseOutcome::Released)),
    }
}

/// The calls about a token, in the order in which the server got them.
fn about<'a>(calls: &'a [Call], owner: &str) -> Vec<&'a Call> {
    calls.iter().filter(|call| call.owner == owner).collect()
}

/// Cancels an acquisition whose request the proxy holds back for some time.
async fn cancel_while_held(attempt: Duration, held: Duration) {
    let network = Network::new(attempt).await;
    let Network { server, proxy, monitor, locks, .. } = &network;
    for _ in 0..60 {
        proxy.set(Direction::Requests, Fault::Hold);
        {
            let mut acquire = pin!(locks.acquire("room", &OPTIONS));
            poll_fn(|context| {
                assert!(acquire.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            // The connection's task writes the request, unless the acquisition is gone before.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        tokio::time::sleep(held).await;
        assert_eq!(monitor.calls(server), [], "the proxy holds it");
        proxy.pass();
        wait_until("nothing is in hand", || locks.in_hand().tasks == 0);
        let calls = monitor.calls(server);
        if let Some(acquire) = calls.iter().position(Call::is_acquire) {
            let (acquire, later) = (&calls[acquire], &calls[acquire + 1..]);
            let taken_back = |call: &Call| call.is_release() && call.owner == acquire.owner;
            assert!(later.iter().any(taken_back), "{calls:#?}");
            assert!(!later.iter().any(Call::is_acquire), "{calls:#?}");
            network.assert_clean().await;
            return;
        }
    }
    panic!("no request was ever on its way");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_request_is_taken_back_behind_it() {
    cancel_while_held(Duration::from_secs(30), Duration::ZERO).await;
}

/// So late that another connection was asked to take it back as well.
#[tokio::test(flavor = "multi_thread")]
async fn cancelled_request_that_arrives_late_is_taken_back_behind_it() {
    cancel_while_held(Duration::from_millis(100), Duration::from_millis(500)).await;
}

/// A token whose request was not answered is over: what it took is given back, and another one is
/// asked under.
#[tokio::test(flavor = "multi_thread")]
async fn unanswered_request_is_taken_back_and_made_anew() {
    let network = Network::new(Duration::from_millis(500)).await;
    let Network { server, proxy, monitor, locks, .. } = &network;
    proxy.set(Direction::Replies, Fault::Hold);
    let acquire = tokio::spawn({
        let locks = locks.clone();
        async move { locks.acquire("room", &OPTIONS).await }
    });
    wait_until("it is granted", || network.record() != "(nil)");
    let first = network.record();
    wait_until("it is taken back", || network.record() == "(nil)");
    proxy.pass();
    let guard = acquire.await.expect("no panic").expect("the network is back");
    let calls = monitor.calls(server);
    let asked = about(&calls, &first).into_iter().filter(|call| call.is_acquire()).count();
    assert_eq!(asked, 1, "{calls:#?}");
    extended(&guard).await;
    released(guard).await;
    network.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn caller_that_gives_up_leaves_no_orphan() {
    let network = Network::new(Duration::from_millis(200)).await;
    let Network { server, proxy, monitor, locks } = &network;
    proxy.set(Direction::Replies, Fault::Swallow);
    let error = locks.acquire("room", &OPTIONS.timeout(Duration::ZERO)).await;
    let Err(LockError::Backend { source, .. }) = error else { panic!("{error:?}") };
    assert_eq!(source.kind(), BackendErrorKind::Timeout);
    let calls = monitor.calls(server);
    assert!(calls.iter().any(Call::is_acquire), "the server has carried it out");
    proxy.pass();
    network.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn released_lock_whose_answer_is_lost_is_released() {
    let network = Network::new(Duration::from_millis(200)).await;
    let Network { proxy, locks, .. } = &network;
    for requests_too in [false, true] {
        let guard = locks.acquire("room", &OPTIONS).await.expect("it is free");
        proxy.set(Direction::Replies, Fault::Swallow);
        if requests_too {
            proxy.swallow();
        }
        let error = guard.release().await.expect_err("there is no answer");
        assert!(matches!(error, LockError::Backend { .. }), "{error}");
        proxy.pass();
        network.assert_clean().await;
    }
}

/// The connection that no answer comes over is replaced, and what was asked over it cannot harm
/// what is asked over the new one.
async fn replace_the_connection(fault: Fault, direction: Direction) {
    let network = Network::new(Duration::from_millis(200)).await;
    let Network { server, proxy, monitor, locks } = &network;
    let before = proxy.accepted();
    proxy.set(direction, fault);
    let acquire = tokio::spawn({
        let locks = locks.clone();
        async move { locks.acquire("room", &OPTIONS).await }
    });
    wait_until("the connection is replaced", || proxy.accepted() > before);
    proxy.pass();
    let guard = acquire.await.expect("no panic").expect("the network is back");
    wait_until("the old request is taken back", || locks.in_hand().tasks == 0);
    extended(&guard).await;

    let calls = monitor.calls(server);
    for call in calls.iter().filter(|call| call.is_acquire()) {
        let elsewhere = |other: &&Call| other.is_acquire() && other.client != call.client;
        let reused = about(&calls, &call.owner).into_iter().find(elsewhere);
        assert_eq!(reused, None, "a token was used over two connections: {calls:#?}");
    }
    released(guard).await;
    network.assert_clean().await;
    wait_until("the old connection is closed", || proxy.open() <= locks.in_hand().connections);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_lost_replies_replace_connection() {
    replace_the_connection(Fault::Swallow, Direction::Replies).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_late_replies_replace_connection() {
    replace_the_connection(Fault::Hold, Direction::Replies).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_late_requests_replace_connection() {
    replace_the_connection(Fault::Hold, Direction::Requests).await;
}

/// A runtime takes its connection along when it ends, but what was sent may still arrive: later
/// than what is sent over another connection to take it back.
#[test]
fn request_that_outlives_its_runtime_is_taken_back() {
    let runtime = || tokio::runtime::Runtime::new().expect("there are threads");
    let first = runtime();
    let network = first.block_on(Network::new(Duration::from_secs(1)));
    let Network { server, proxy, monitor, locks } = &network;
    proxy.set(Direction::Requests, Fault::Delay(Duration::from_secs(4)));
    first.spawn({
        let locks = locks.clone();
        async move { locks.acquire("room", &OPTIONS).await }
    });
    // By then the request is on its way.
    std::thread::sleep(Duration::from_millis(1500));
    // Later connections are not delayed.
    proxy.pass();
    drop(first);
    wait_until("the request arrives", || monitor.calls(server).iter().any(Call::is_acquire));
    runtime().block_on(network.assert_clean());
}

/// A proxy that gives up on a slow server says so in words of its own, and the server carries the
/// request out all the same. So does one whose answer is none of the script's.
#[test]
fn answer_that_leaves_outcome_open_is_taken_back_and_asked_again() {
    at_once(
        ["-ERR Connection timed out\r\n", "-upstream failure\r\n", "+what\r\n"],
        async |answer| {
            let network = Network::new(Duration::from_secs(1)).await;
            let Network { server, proxy, monitor, locks, .. } = &network;
            proxy.set(Direction::Replies, Fault::Answer(answer));
            let acquire = tokio::spawn({
                let locks = locks.clone();
                async move { locks.acquire("room", &OPTIONS).await }
            });
            wait_until("it is asked", || {
                assert!(!acquire.is_finished(), "{answer:?} ends the wait");
                monitor.calls(server).iter().any(Call::is_acquire)
            });
            // The answer is on its way back.
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(!acquire.is_finished(), "{answer:?} ends the wait");
            proxy.pass();
            let guard = acquire.await.expect("no panic").expect(answer);
            assert_eq!(guard.release().await.ok(), Some(ReleaseOutcome::Released), "{answer:?}");
            network.assert_clean().await;
        },
    );
}
