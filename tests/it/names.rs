//! G1 in copies of a machine: a manager with nothing in hand has another name after a reconnect, so
//! each copy has a channel of its own. The tests of `owner` cover the tokens of copies.

use std::time::Duration;

use cache_lock::{LockManager, LockOptions};
use test_support::{RedisServer, wait_until};

use crate::common::{
    fleet::guarded,
    waiters::{wait_until_idle, wait_until_listed},
};

/// Longer than a test takes: no lease runs out.
const LONG: LockOptions =
    LockOptions::new().expire(Duration::from_secs(3600)).timeout(Duration::from_secs(50));

async fn connect(server: &RedisServer) -> LockManager {
    LockManager::connect(&server.url()).await.expect("the server is there")
}

/// The channels that are listened to.
fn channels(server: &RedisServer) -> String {
    server.cli(&["PUBSUB", "CHANNELS", "cl1:*"])
}

/// The manager that holds `room`, as its channel is called.
fn holder(server: &RedisServer) -> String {
    let token = server.cli(&["GET", "room"]);
    token.rsplit_once(':').expect("a token").0.to_owned()
}

/// Waits for `room` until `other` lets it go, and is told of it.
async fn wait_for_turn(server: &RedisServer, locks: &LockManager, other: &LockManager) -> String {
    let held = guarded(other.acquire("room", &LONG)).await.expect("free");
    let waiting = {
        let locks = locks.clone();
        tokio::spawn(async move { locks.acquire("room", &LONG).await })
    };
    wait_until_listed(server, 1);
    held.release().await.expect("the server answers");
    let guard = guarded(waiting).await.expect("no panic").expect("its turn");
    let name = holder(server);
    guard.release().await.expect("the server answers");
    name
}

fn kill_connections(server: &RedisServer) {
    for kind in ["pubsub", "normal"] {
        server.cli(&["CLIENT", "KILL", "TYPE", kind]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_manager_has_another_name_after_its_connections_have_ended() {
    let server = RedisServer::start();
    let (locks, other) = (connect(&server).await, connect(&server).await);
    let old = wait_for_turn(&server, &locks, &other).await;
    assert!(channels(&server).contains(&old));
    wait_until_idle(&locks);
    kill_connections(&server);
    // The first may be asked for before the end of the connection is noticed.
    let renamed = async {
        loop {
            let guard = locks.acquire("room", &LONG).await.expect("free");
            let name = holder(&server);
            guard.release().await.expect("the server answers");
            if name != old {
                return name;
            }
        }
    };
    let new = guarded(renamed).await;
    let told = wait_for_turn(&server, &locks, &other).await;
    assert!(channels(&server).contains(&told), "it listens to the name that it has: {told}");
    assert!(!channels(&server).contains(&old));
    assert_ne!(new, old);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holder_keeps_its_name_when_its_connections_end() {
    let server = RedisServer::start();
    let (locks, other) = (connect(&server).await, connect(&server).await);
    let old = wait_for_turn(&server, &locks, &other).await;
    let held = guarded(locks.acquire("held", &LONG)).await.expect("free");
    kill_connections(&server);
    wait_until("it listens again", || channels(&server).contains(&old));
    assert_eq!(wait_for_turn(&server, &locks, &other).await, old);
    held.release().await.expect("the server answers");
}
