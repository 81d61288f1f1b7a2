//! How a lock manager is made.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use super::LockManager;
#[cfg(feature = "redis")]
use crate::clock::Instant;
#[cfg(feature = "redis")]
use crate::store::redis::RedisStore;
#[cfg(feature = "tls")]
use crate::store::redis::TlsConfig;
use crate::{
    driver::Driver,
    error::LockError,
    key_queues::KeyQueues,
    manager_core::{Core, Counts},
    mutex::Mutex,
    options::{Defaults, check_lease},
    owner::TokenSource,
    protocol::messages::Inbox,
    renew::Renewer,
    store::{Store, memory::MemoryStore},
};

/// How long [`LockManager::connect`] waits for the server.
#[cfg(feature = "redis")]
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Builds a [`LockManager`]; see [`LockManager::builder`].
///
/// ```
/// use std::time::Duration;
/// use cache_lock::{LockManager, MemoryStore};
///
/// let locks = LockManager::builder()
///     .timeout(Duration::from_secs(5))
///     .expire(Duration::from_secs(30))
///     .in_memory(MemoryStore::new())?;
/// # Ok::<(), cache_lock::LockError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LockManagerBuilder {
    timeout: Duration,
    expire: Duration,
    attempt_timeout: Duration,
    background_release: bool,
    #[cfg(feature = "tls")]
    tls: Option<TlsConfig>,
}

impl Default for LockManagerBuilder {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(2),
            expire: Duration::from_secs(10),
            attempt_timeout: Duration::from_secs(1),
            background_release: false,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl LockManagerBuilder {
    /// The longest wait for another holder, unless an option or attribute sets it. Default: 2 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Lease length, unless an option or attribute sets it. A crashed holder blocks the key for this long.
    /// Default: 10 s. Range: 100 ms to 24 h.
    pub fn expire(mut self, expire: Duration) -> Self {
        self.expire = expire;
        self
    }

    /// The longest time that one request to the server may take; at most half of the lease. Default: 1 s. Range:
    /// 10 ms to 1 min.
    pub fn attempt_timeout(mut self, attempt_timeout: Duration) -> Self {
        self.attempt_timeout = attempt_timeout;
        self
    }

    /// Whether the attribute and [`LockManager::run`] return without waiting for the answer to the
    /// release. A failure is logged then, and tried again. Default: `false`, so the lock is free when the call
    /// returns.
    pub fn background_release(mut self, background_release: bool) -> Self {
        self.background_release = background_release;
        self
    }

    /// The certificates for `rediss://` URLs.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: TlsConfig) -> Self {
        self.tls = Some(tls);
        self
    }

    /// A manager on a store in memory.
    ///
    /// # Errors
    /// [`LockError::InvalidOption`].
    pub fn in_memory(self, store: MemoryStore) -> Result<LockManager, LockError> {
        self.check()?;
        Ok(self.build_in_memory(store).into())
    }

    /// Connects to a Redis server; see [`LockManager::connect`].
    ///
    /// # Errors
    /// Those of [`LockManager::connect`], and [`LockError::InvalidOption`].
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    #[cfg(feature = "redis")]
    pub async fn connect(self, url: &str) -> Result<LockManager, LockError> {
        let (core, store) = self.redis(url)?;
        let error = |error| LockError::connect(store.server(), error);
        core.start().map_err(error)?;
        store.check(Instant::now() + CONNECT_TIMEOUT).await.map_err(error)?;
        Ok(core.into())
    }

    /// The same, but the first acquisition connects. For programs that start before their servers.
    ///
    /// # Errors
    /// [`LockError::Connect`] if the URL cannot be read, and [`LockError::InvalidOption`].
    #[cfg(feature = "redis")]
    pub fn connect_lazy(self, url: &str) -> Result<LockManager, LockError> {
        Ok(self.redis(url)?.0.into())
    }

    #[cfg(feature = "redis")]
    fn redis(self, url: &str) -> Result<(Arc<Core>, RedisStore), LockError> {
        self.check()?;
        let (driver, tokens) = (Arc::new(Driver::new()), Arc::new(TokenSource::new()));
        #[cfg(feature = "tls")]
        let tls = self.tls.as_ref();
        #[cfg(not(feature = "tls"))]
        let tls = None;
        let (store, inbox) = RedisStore::new(
            url,
            tls,
            Arc::clone(&driver),
            Arc::clone(&tokens),
            self.attempt_timeout,
        )
        .map_err(|error| LockError::connect("Redis", error))?;
        Ok((self.build(store.clone().into(), driver, tokens, Some(inbox)), store))
    }

    fn check(&self) -> Result<(), LockError> {
        check_lease("expire", self.expire)?;
        let value = self.attempt_timeout;
        if value < Duration::from_millis(10) || value > Duration::from_secs(60) {
            let limit = "it must be from 10ms to 1min";
            return Err(LockError::InvalidOption { option: "attempt_timeout", value, limit });
        }
        Ok(())
    }

    pub(super) fn build_in_memory(self, store: MemoryStore) -> Arc<Core> {
        self.build(store.into(), Arc::new(Driver::new()), Arc::new(TokenSource::local()), None)
    }

    fn build(
        self,
        store: Store,
        driver: Arc<Driver>,
        tokens: Arc<TokenSource>,
        inbox: Option<Inbox>,
    ) -> Arc<Core> {
        let (id, attempt_timeout) = (TokenSource::number(), self.attempt_timeout);
        let queues =
            KeyQueues::new(id, store.clone(), Arc::clone(&driver), tokens, attempt_timeout);
        let queues = Arc::new(queues);
        let renewer =
            Renewer::new(store.clone(), Arc::clone(&driver), Arc::clone(&queues), attempt_timeout);
        Arc::new(Core {
            id,
            store,
            driver,
            queues,
            renewer: Arc::new(renewer),
            #[cfg(feature = "single-flight")]
            flights: Arc::default(),
            inbox: Mutex::new(inbox),
            defaults: Defaults {
                timeout: self.timeout,
                expire: self.expire,
                background_release: self.background_release,
            },
            attempt_timeout,
            counts: Counts::default(),
            closed: AtomicBool::new(false),
        })
    }
}
