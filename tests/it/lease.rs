//! A lease while it is held: how it is renewed, how long it is valid, and how it is lost.

mod loss;
mod max_hold;
mod outage;
mod renewal;
mod validity;

use std::time::Duration;

use cache_lock::{LockManager, LockOptions};
use test_support::{Proxy, RedisServer};

use crate::common::fleet::PATIENT;

/// Short, and still so long that a core which is blocked for a second costs no renewal.
const EXPIRE: Duration = Duration::from_secs(2);
const RENEWED: LockOptions = PATIENT.expire(EXPIRE);

/// A server, and a proxy before it that the manager talks through.
async fn proxied() -> (RedisServer, Proxy, LockManager) {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let locks = LockManager::connect(&server.url_through(proxy.port())).await;
    (server, proxy, locks.expect("the server is there"))
}

/// How many extensions the server has made.
fn extensions(server: &RedisServer) -> u64 {
    server.calls("pexpire")
}
