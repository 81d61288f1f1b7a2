//! The locks that are compared.

use std::time::Duration;

use cache_lock::{LockGuard, LockKey, LockManager, LockOptions};
use redis::{Client, Script, aio::MultiplexedConnection, io::tcp::TcpSettings};
use test_support::RedisServer;

use crate::Error;

/// One of them.
#[derive(Clone, Debug)]
pub(crate) enum Implementation {
    /// `SET NX PX` and a release script, as one writes them by hand: no fencing token, no renewal,
    /// and a fixed pause between two tries.
    ByHand { connection: MultiplexedConnection, pause: Duration },
    /// This crate, on Redis.
    CacheLock { locks: LockManager, name: &'static str },
}

const EXPIRE: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(120);
const RELEASE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                       return redis.call('DEL', KEYS[1]) end return 0";

impl Implementation {
    /// All of them, each with a connection of its own.
    pub(crate) async fn all(url: &str) -> Result<Vec<Self>, Error> {
        let info = Client::open(url)?.get_connection_info().clone();
        let client = Client::open(info.set_tcp_settings(TcpSettings::default().set_nodelay(true)))?;
        let mut all = Vec::new();
        for pause in [2, 5, 20].map(Duration::from_millis) {
            let connection = client.get_multiplexed_async_connection().await?;
            all.push(Self::ByHand { connection, pause });
        }
        let locks = LockManager::connect(url).await?;
        all.push(Self::CacheLock { locks, name: "cache-lock" });
        let locks = LockManager::builder().background_release(true).connect(url).await?;
        all.push(Self::CacheLock { locks, name: "cache-lock, background release" });
        let locks = LockManager::in_memory();
        all.push(Self::CacheLock { locks, name: "cache-lock, in memory" });
        Ok(all)
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::ByHand { pause, .. } => format!("by hand, retry every {pause:?}"),
            Self::CacheLock { name, .. } => (*name).to_owned(),
        }
    }

    /// How many commands it has sent, by the server's statistics. They count what scripts call as
    /// well, so only commands that the scripts of an implementation do not call are of use.
    pub(crate) fn sent(&self, server: &RedisServer) -> u64 {
        let commands: &[&str] = match self {
            Self::ByHand { .. } => &["set", "evalsha", "script|load"],
            Self::CacheLock { .. } => &["evalsha", "eval"],
        };
        commands.iter().map(|command| server.calls(command)).sum()
    }

    /// Runs a critical section under the lock of `key`.
    pub(crate) async fn section(
        &self,
        key: u32,
        owner: &str,
        body: impl AsyncFnOnce(),
    ) -> Result<(), Error> {
        match self {
            Self::CacheLock { locks, .. } => {
                let options = LockOptions::new().timeout(TIMEOUT).expire(EXPIRE);
                let body = async |_: &LockGuard| body().await;
                Ok(locks.run(LockKey::new("bench").part(key), &options, body).await?)
            }
            Self::ByHand { connection, pause } => {
                let mut connection = connection.clone();
                let key = format!("by-hand:{key}");
                while !set(&mut connection, &key, owner).await? {
                    tokio::time::sleep(*pause).await;
                }
                body().await;
                let _: i64 =
                    Script::new(RELEASE).key(key).arg(owner).invoke_async(&mut connection).await?;
                Ok(())
            }
        }
    }
}

async fn set(
    connection: &mut MultiplexedConnection,
    key: &str,
    owner: &str,
) -> Result<bool, Error> {
    let expire = u64::try_from(EXPIRE.as_millis())?;
    let mut set = redis::cmd("SET");
    set.arg(key).arg(owner).arg("NX").arg("PX").arg(expire);
    let set: Option<String> = set.query_async(connection).await?;
    Ok(set.is_some())
}
