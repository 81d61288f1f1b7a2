//! G6 over an outage that outlasts every request: a token that may hold the lock is released when the
//! server is back, however long its lease would last.

use std::time::Duration;

use cache_lock::{LockError, LockManager, LockOptions};
use test_support::{Direction, Fault, Proxy, RedisServer, wait_until};

use crate::common::cases::at_once;

const ATTEMPT: Duration = Duration::from_millis(50);
/// Many more attempts than a request may be in flight.
const OUTAGE: Duration = Duration::from_secs(3);
/// A record of it that goes away was taken away.
const LONG: LockOptions =
    LockOptions::new().expire(Duration::from_secs(3600)).timeout(Duration::ZERO);
const SHORT: LockOptions =
    LockOptions::new().expire(Duration::from_millis(200)).timeout(Duration::from_millis(500));

struct Network {
    server: RedisServer,
    proxy: Proxy,
    locks: LockManager,
}

impl Network {
    async fn new() -> Self {
        let server = RedisServer::start();
        let proxy = Proxy::start(server.port());
        let url = server.url_through(proxy.port());
        let locks =
            LockManager::builder().attempt_timeout(ATTEMPT).connect_lazy(&url).expect("a URL");
        let guard = locks.acquire("warm", &LONG.timeout(Duration::from_secs(30))).await;
        guard.expect("it is free").release().await.expect("the server answers");
        Self { server, proxy, locks }
    }

    fn is_held(&self) -> bool {
        self.server.cli(&["EXISTS", "room"]) == "1"
    }

    /// Goes on with the outage, ends it, and sees that the key becomes free.
    async fn assert_free_after_outage(&self) {
        tokio::time::sleep(OUTAGE).await;
        assert!(self.is_held(), "no release reached the server");
        self.proxy.pass();
        wait_until("the key is free", || !self.is_held());
        wait_until("nothing is in hand", || self.locks.in_hand().tasks == 0);
    }
}

/// What the network does while it is out.
#[derive(Clone, Copy)]
enum Outage {
    Refuses,
    Swallows,
    /// Connections are lost, and new ones accepted but mute.
    Mutes,
}

impl Outage {
    const ALL: [Self; 3] = [Self::Refuses, Self::Swallows, Self::Mutes];
}

fn begin(proxy: &Proxy, outage: Outage) {
    match outage {
        Outage::Refuses => proxy.refuse(),
        Outage::Swallows => proxy.swallow(),
        Outage::Mutes => {
            proxy.swallow();
            proxy.cut();
        }
    }
}

#[test]
fn lock_of_lost_answer_is_released_after_outage() {
    at_once(Outage::ALL, async |outage| {
        let network = Network::new().await;
        // The request is taken back behind it, unless the outage begins before.
        for _ in 0..100 {
            network.proxy.set(Direction::Replies, Fault::Swallow);
            let acquire = tokio::spawn({
                let locks = network.locks.clone();
                async move { locks.acquire("room", &LONG).await }
            });
            while !network.is_held() && !acquire.is_finished() {}
            begin(&network.proxy, outage);
            let error = acquire.await.expect("no panic").expect_err("the answer is lost");
            assert!(matches!(error, LockError::Backend { .. }), "{error}");
            if network.is_held() {
                break;
            }
            network.proxy.pass();
        }
        network.assert_free_after_outage().await;
    });
}

/// The waiter asks for a much shorter lease than the one that is passed on.
#[test]
fn old_token_of_lost_pass_is_released_after_outage() {
    at_once(Outage::ALL, async |outage| {
        let network = Network::new().await;
        let guard = network.locks.acquire("room", &LONG).await.expect("it is free");
        let waiter = tokio::spawn({
            let locks = network.locks.clone();
            async move { locks.acquire("room", &SHORT).await }
        });
        wait_until("it waits", || network.locks.in_hand().tasks > 0);
        begin(&network.proxy, outage);
        // Hands over to the waiter, which has to ask since the lease is too long for it.
        drop(guard);
        let error = waiter.await.expect("no panic").expect_err("the server does not answer");
        assert!(matches!(error, LockError::Backend { .. }), "{error}");
        network.assert_free_after_outage().await;
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_whose_extension_was_not_answered_is_released_after_outage() {
    let network = Network::new().await;
    let brief = LONG.expire(Duration::from_secs(1));
    let guard = network.locks.acquire("room", &brief).await.expect("it is free");
    // So the server knows the script.
    guard.extend(Duration::from_secs(2)).await.expect("the server answers");
    network.proxy.set(Direction::Replies, Fault::Swallow);
    guard.extend(Duration::from_secs(3600)).await.expect_err("the answer is lost");
    wait_until("the lease is long", || {
        network.server.cli(&["PTTL", "room"]).parse().is_ok_and(|left: u64| left > 1_000_000)
    });
    network.proxy.refuse();
    drop(guard);
    network.assert_free_after_outage().await;
}
