//! The locks that are compared, each behind the same few functions.

mod async_redis_lock;
mod cache_lock;
mod direct_grant;
mod distributed_lock;
mod raw;
mod redis_lock;
mod rslock;

use std::{sync::Arc, time::Duration};

use redis::{AsyncConnectionConfig, Client, ProtocolVersion, io::tcp::TcpSettings};
use serde::{Deserialize, Serialize};

pub(crate) use self::raw::{FOREIGN_RELEASE_RUNS, Foreign};
use crate::{
    Error,
    section::{Body, Interval},
};

/// The lease, wherever a crate lets it be set.
pub(crate) const EXPIRE: Duration = Duration::from_secs(10);
/// The longest wait for a lock, wherever a crate lets it be set.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Which lock, with which settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// `SET NX PX`, and a script that compares and deletes, as one writes them by hand.
    Raw { retry_ms: u64 },
    /// A waiting list and a pushed grant, as one would write them by hand for speed alone.
    DirectGrant { raise: bool },
    /// This crate, on Redis.
    CacheLock { background: bool },
    /// This crate, in memory.
    InMemory,
    /// Another crate.
    Peer(Peer, Tuning),
}

/// The other crates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Peer {
    Rslock,
    RedisLock,
    AsyncRedisLock,
    DistributedLock,
}

/// How a peer is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Tuning {
    /// As the crate's documentation begins: no option is set.
    Defaults,
    /// The pause between two tries in ms; lease and patience as those of the others.
    Retry(u64),
}

impl Peer {
    pub(crate) const ALL: [Self; 4] =
        [Self::Rslock, Self::RedisLock, Self::AsyncRedisLock, Self::DistributedLock];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rslock => "rslock",
            Self::RedisLock => "redis-lock",
            Self::AsyncRedisLock => "async-redis-lock",
            Self::DistributedLock => "distributed-lock",
        }
    }
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Raw { .. } => "raw SET + EVALSHA",
            Self::DirectGrant { raise: true } => "direct grant by hand",
            Self::DirectGrant { raise: false } => "direct grant by hand, unsafe",
            Self::CacheLock { background: false } => "cache-lock",
            Self::CacheLock { background: true } => "cache-lock, background release",
            Self::InMemory => "cache-lock, in memory",
            Self::Peer(peer, _) => peer.name(),
        }
    }

    pub(crate) fn settings(self) -> String {
        match self {
            Self::Raw { retry_ms } | Self::Peer(_, Tuning::Retry(retry_ms)) => {
                format!("retry {retry_ms} ms")
            }
            Self::Peer(_, Tuning::Defaults) => "defaults".to_owned(),
            Self::DirectGrant { .. } | Self::CacheLock { .. } | Self::InMemory => String::new(),
        }
    }

    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Self::CacheLock { .. } | Self::InMemory)
    }

    pub(crate) fn is_peer(self) -> bool {
        matches!(self, Self::Peer(..))
    }

    /// The record in Redis of the lock of that name.
    pub(crate) fn record(self, name: &str) -> String {
        match self {
            Self::Peer(Peer::RedisLock, _) => format!("redlock:{name}"),
            Self::Peer(Peer::DistributedLock, _) => format!("distributed-lock:{name}"),
            _ => name.to_owned(),
        }
    }

    /// Whether its clients send a plain `SET` for each try. What its scripts call does not matter:
    /// none of them calls `SET` unless the client never does.
    pub(crate) fn sends_set(self) -> bool {
        match self {
            Self::Raw { .. } => true,
            Self::Peer(peer, _) => peer != Peer::AsyncRedisLock,
            Self::DirectGrant { .. } | Self::CacheLock { .. } | Self::InMemory => false,
        }
    }
}

/// The name of the lock `key` of a run. A run finds nothing of an earlier one.
pub(crate) fn name(run: u64, key: u32) -> String {
    format!("bench:{}", part(run, key))
}

fn part(run: u64, key: u32) -> String {
    format!("{run}-{key}")
}

/// A lock that is connected to its server. Clones share the connection.
#[derive(Clone)]
pub(crate) enum Implementation {
    Raw(raw::Raw),
    DirectGrant(direct_grant::DirectGrant),
    CacheLock(cache_lock::CacheLock),
    Rslock(rslock::Rslock),
    RedisLock(redis_lock::RedisLock),
    AsyncRedisLock(Arc<async_redis_lock::AsyncRedisLock>),
    DistributedLock(distributed_lock::DistributedLock),
}

impl Implementation {
    pub(crate) async fn connect(kind: Kind, url: &str) -> Result<Self, Error> {
        Ok(match kind {
            Kind::Raw { retry_ms } => Self::Raw(raw::Raw::connect(url, retry_ms).await?),
            Kind::DirectGrant { raise } => {
                Self::DirectGrant(direct_grant::DirectGrant::connect(url, raise).await?)
            }
            Kind::CacheLock { background } => {
                Self::CacheLock(cache_lock::CacheLock::connect(url, background).await?)
            }
            Kind::InMemory => Self::CacheLock(cache_lock::CacheLock::in_memory()),
            Kind::Peer(Peer::Rslock, tuning) => Self::Rslock(rslock::Rslock::new(url, tuning)?),
            Kind::Peer(Peer::RedisLock, tuning) => {
                Self::RedisLock(redis_lock::RedisLock::connect(url, tuning).await?)
            }
            Kind::Peer(Peer::AsyncRedisLock, tuning) => {
                let lock = async_redis_lock::AsyncRedisLock::connect(url, tuning).await?;
                Self::AsyncRedisLock(Arc::new(lock))
            }
            Kind::Peer(Peer::DistributedLock, tuning) => Self::DistributedLock(
                distributed_lock::DistributedLock::connect(url, tuning).await?,
            ),
        })
    }

    /// Acquires the lock `key` of a run, runs the body, and releases.
    pub(crate) async fn section(&self, run: u64, key: u32, body: Body) -> Result<Interval, Error> {
        match self {
            Self::Raw(lock) => lock.section(&name(run, key), body).await,
            Self::DirectGrant(lock) => lock.section(&name(run, key), body).await,
            Self::CacheLock(lock) => lock.section(part(run, key), body).await,
            Self::Rslock(lock) => lock.section(&name(run, key), body).await,
            Self::RedisLock(lock) => lock.section(&name(run, key), body).await,
            Self::AsyncRedisLock(lock) => lock.section(&name(run, key), body).await,
            Self::DistributedLock(lock) => lock.section(&name(run, key), body).await,
        }
    }

    /// Acquires a lock to keep it, if the crate extends the lease by itself.
    pub(crate) async fn hold(&self, run: u64, key: u32) -> Result<Held, Error> {
        match self {
            Self::CacheLock(lock) => Ok(Held::Ours(lock.hold(part(run, key)).await?)),
            Self::AsyncRedisLock(lock) => {
                Ok(Held::AsyncRedis(Box::new(lock.hold(&name(run, key)).await?)))
            }
            _ => Err("it does not extend leases by itself".into()),
        }
    }

    /// Waits for what goes on in the background.
    pub(crate) async fn finish(&self) {
        if let Self::CacheLock(lock) = self {
            lock.shutdown().await;
        }
    }
}

/// A lock that is kept.
pub(crate) enum Held {
    Ours(::cache_lock::LockGuard),
    AsyncRedis(Box<::async_redis_lock::Lock>),
}

impl Held {
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Ours(guard) => guard.is_lost(),
            Self::AsyncRedis(lock) => lock.is_lost(),
        }
    }
}

/// A client that sends small requests at once.
fn client(url: &str) -> Result<Client, Error> {
    let info = Client::open(url)?.get_connection_info().clone();
    Ok(Client::open(info.set_tcp_settings(TcpSettings::default().set_nodelay(true)))?)
}

/// A client with pushes, which need the newer protocol.
fn resp3_client(url: &str) -> Result<Client, Error> {
    let info = client(url)?.get_connection_info().clone();
    let redis = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    Ok(Client::open(info.set_redis_settings(redis))?)
}

/// A busy server is no reason to give up: the default bound on a reply is for programs.
fn patient() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new().set_response_timeout(Some(TIMEOUT))
}
