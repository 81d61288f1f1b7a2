//! The lock manager: what a program has one of.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

#[cfg(feature = "redis")]
use crate::store::redis::RedisStore;
#[cfg(feature = "tls")]
use crate::store::redis::TlsConfig;
use crate::{
    acquire,
    clock::Moment,
    driver::Driver,
    error::{BackendError, LockError},
    guard::LockGuard,
    key::LockKey,
    lease::{Lease, attempt},
    options::{Defaults, LockOptions, check_lease},
    owner::Owners,
    queue::{Ending, Queues},
    renew::Renewer,
    scope,
    single_flight::flights::Flights,
    store::{Inbox, Store, memory::MemoryStore},
};

/// How long [`LockManager::connect`] waits for the server.
#[cfg(feature = "redis")]
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Acquires locks, renews them while they are held, and releases them.
///
/// A program has one: it is made when the program starts, and found by the attribute because it is
/// [installed](Self::install). Clones are handles of the same manager. It serves any number of
/// runtimes; a thread of its own renews the leases, so that a body may block.
///
/// ```no_run
/// # async fn main_() -> Result<(), cache_lock::LockError> {
/// use cache_lock::LockManager;
///
/// let locks = LockManager::connect("redis://127.0.0.1/").await?;
/// locks.install()?;
/// // .. run the program ..
/// locks.shutdown().await;
/// # Ok(()) }
/// ```
///
/// When the last handle is dropped and no guard is left, what is still to be released is released,
/// and the thread ends.
#[derive(Clone)]
pub struct LockManager {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    /// Tells managers apart.
    pub(crate) id: u64,
    pub(crate) store: Store,
    pub(crate) driver: Arc<Driver>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) renewer: Arc<Renewer>,
    pub(crate) flights: Arc<Flights>,
    pub(crate) defaults: Defaults,
    pub(crate) attempt_timeout: Duration,
    /// What the store tells unasked, until the thread reads it.
    inbox: Mutex<Option<Inbox>>,
    pub(crate) counts: Counts,
    closed: AtomicBool,
}

impl Inner {
    /// Starts the thread, if it does not run yet.
    pub(crate) fn start(&self) -> Result<(), BackendError> {
        self.driver.start(|| {
            let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
            let queues = Arc::clone(&self.queues).run(inbox);
            let renewer = Arc::clone(&self.renewer).run();
            async move {
                tokio::spawn(queues);
                renewer.await;
            }
        })
    }

    /// Ends a lease on this side. Returns what is left to do on the server's, and whether the lease
    /// had not ended before.
    pub(crate) fn end(&self, lease: &Arc<Lease>) -> (Ending, bool) {
        // It comes first: nothing that the server says or does not say makes the lock ours again.
        let in_time = lease.release(Moment::now());
        self.renewer.leave(lease);
        (self.queues.end(lease, in_time), in_time)
    }

    /// Ends a lease, and has it released in the background.
    pub(crate) fn give_back(&self, lease: &Arc<Lease>) {
        if let (Ending::Release(ended), _) = self.end(lease) {
            self.queues.release_detached(lease, ended);
        }
    }

    /// The longest time that one request for a lease of this length may take.
    pub(crate) fn attempt(&self, expire: Duration) -> Duration {
        attempt(self.attempt_timeout, expire)
    }

    pub(crate) fn attempt_end(&self, start: Moment, expire: Duration) -> Moment {
        start.after(self.attempt(expire))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.driver.stop();
    }
}

impl LockManager {
    /// Settings other than the defaults.
    pub fn builder() -> LockManagerBuilder {
        LockManagerBuilder::default()
    }

    /// Connects to a Redis server: `redis://[user[:password]@]host[:port][/database]`, the same
    /// with `rediss://` for TLS (feature `tls`), or `unix:///path`.
    ///
    /// # Errors
    /// [`LockError::Connect`] if the URL cannot be read, or no server that can keep locks be reached in 5 s.
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    #[cfg(feature = "redis")]
    pub async fn connect(url: &str) -> Result<Self, LockError> {
        Self::builder().connect(url).await
    }

    /// Locks among the tasks of this process alone, in memory. For tests, and for programs that
    /// may do without a server.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use cache_lock::{LockKey, LockManager, LockOptions};
    ///
    /// let locks = LockManager::in_memory();
    /// let guard = locks.acquire(LockKey::new("room").part(42), &LockOptions::new()).await?;
    /// assert_eq!(guard.key().as_str(), "room:42");
    /// guard.release().await?;
    /// # Ok::<(), cache_lock::LockError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn in_memory() -> Self {
        LockManagerBuilder::default().build_in_memory(MemoryStore::new())
    }

    /// Makes this the manager that the attribute uses, for the rest of the process.
    ///
    /// # Errors
    /// [`LockError::AlreadyInstalled`] if there is one.
    pub fn install(&self) -> Result<(), LockError> {
        scope::install(self.clone())
    }

    /// The manager that the attribute would use here: that of the innermost
    /// [scope](Self::scope), else the [installed](Self::install) one.
    ///
    /// # Errors
    /// [`LockError::NoManager`].
    pub fn current() -> Result<Self, LockError> {
        scope::manager()
    }

    /// Runs a future with this manager in place of the installed one, for the attribute on
    /// functions that it calls. It does not cross `spawn`: a spawned task needs a scope of its own,
    /// `spawn(locks.scope(future))`. A server spawns its requests, so a scope around it reaches none.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use cache_lock::LockManager;
    ///
    /// # async fn reserve() {}
    /// LockManager::in_memory().scope(async { reserve().await }).await;
    /// # });
    /// ```
    ///
    /// # Cancel safety
    /// That of the future.
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        scope::with_manager(self.clone(), future)
    }

    /// Acquires a lock, and waits for another holder for as long as the options say.
    ///
    /// # Errors
    /// [`LockError::Contended`] if somebody else held it all that time; [`LockError::Backend`] if
    /// the server could not be asked; [`LockError::Nested`] if an enclosing body of this task
    /// holds it; [`LockError::InvalidOption`] and [`LockError::InvalidKey`];
    /// [`LockError::ShutDown`].
    ///
    /// It ends within the timeout, or within one attempt (1 s, at most half of the lease) if that
    /// is longer, also when the server is dead or silent.
    ///
    /// # Cancel safety
    /// Dropped at any point, it leaves no lock behind: what a request may have acquired whose
    /// answer was not seen is given back in the background.
    pub async fn acquire(
        &self,
        key: impl Into<LockKey>,
        options: &LockOptions,
    ) -> Result<LockGuard, LockError> {
        acquire::acquire(&self.inner, key.into(), options).await
    }

    /// Acquires a lock if nobody holds it, without waiting; `None` if somebody does.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire), without contention.
    ///
    /// # Cancel safety
    /// That of [`acquire`](Self::acquire).
    pub async fn try_acquire(
        &self,
        key: impl Into<LockKey>,
        options: &LockOptions,
    ) -> Result<Option<LockGuard>, LockError> {
        match self.acquire(key, &options.timeout(Duration::ZERO)).await {
            Ok(guard) => Ok(Some(guard)),
            Err(error) if error.is_contended() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Runs a body while holding a lock. It is what the attribute does. The body's own `Result` comes
    /// inside of that of the lock.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use cache_lock::{LockGuard, LockManager, LockOptions};
    ///
    /// let locks = LockManager::in_memory();
    /// let body = async |lock: &LockGuard| lock.token();
    /// let token = locks.run("job", &LockOptions::new(), body).await?;
    /// assert!(token.as_i64() > 0);
    /// # Ok::<(), cache_lock::LockError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire), and [`LockError::Lost`] if the lease is lost while the
    /// body runs (unless [`OnLost::Finish`](crate::OnLost::Finish)). A release that fails never
    /// takes the place of the body's value.
    ///
    /// # Cancel safety
    /// Dropped at any point, the body is dropped, and then the lock is released in the background.
    pub async fn run<T>(
        &self,
        key: impl Into<LockKey>,
        options: &LockOptions,
        body: impl AsyncFnOnce(&LockGuard) -> T,
    ) -> Result<T, LockError> {
        let guard = self.acquire(key, options).await?;
        let outcome = {
            let body = std::pin::pin!(body(&guard));
            guard.hold(body).await
        };
        guard.finish().await;
        outcome
    }

    /// Sees that the server answers, for a program's health checks. One round trip, which touches no
    /// record, over the connection that the caller's locks use; it ends after one attempt (1 s).
    ///
    /// An answer does not say that a lock can be written: a replica gives one, too, and so does a server
    /// that is full.
    ///
    /// # Errors
    /// [`LockError::Ping`] if the server does not answer, and [`LockError::ShutDown`].
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    pub async fn ping(&self) -> Result<(), LockError> {
        let Inner { store, attempt_timeout, .. } = &*self.inner;
        if self.inner.is_closed() {
            return Err(LockError::ShutDown);
        }
        let error = |source| LockError::ping(store.server(), source);
        self.inner.start().map_err(error)?;
        let give_up = Moment::now().after(*attempt_timeout);
        // The extension of no lease at all: a script that every user of locks may run.
        store.extend(&[], give_up, |_| (), give_up).await.map(drop).map_err(error)
    }

    /// Ends the manager: later acquisitions fail ([`LockError::ShutDown`]), leases that are held
    /// are lost ([`LostReason::ShutDown`](crate::LostReason::ShutDown)) and released, acquisitions and
    /// releases that are under way are waited for, and [`local`](crate::SingleFlight::local) flights
    /// end. Holders have one attempt (1 s) to let go before their locks are taken from them.
    ///
    /// A program calls it before it ends: else locks that were dropped last outlive it, for a lease.
    ///
    /// # Cancel safety
    /// It goes on in the background as far as it has come, and can be called again.
    pub async fn shutdown(&self) {
        let Inner { renewer, queues, flights, driver, attempt_timeout, .. } = &*self.inner;
        self.inner.closed.store(true, Ordering::SeqCst);
        if driver.is_another_process() {
            return; // What is held is the parent's.
        }
        queues.close();
        renewer.close();
        flights.close();
        driver.within(Moment::now().after(*attempt_timeout), renewer.all_left()).await;
        for lease in renewer.take_ended() {
            self.inner.give_back(&lease);
        }
        driver.within(Moment::now().after(*attempt_timeout * 2), driver.idle()).await;
    }

    /// What the manager has done since it was made, for a program's metrics.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use cache_lock::{LockManager, LockOptions};
    ///
    /// let locks = LockManager::in_memory();
    /// locks.run("job", &LockOptions::new(), async |_| ()).await?;
    /// assert_eq!(locks.stats().acquired, 1);
    /// # Ok::<(), cache_lock::LockError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn stats(&self) -> LockStats {
        let Counts { acquired, contended, failed, lost } = &self.inner.counts;
        LockStats {
            acquired: acquired.load(Ordering::Relaxed),
            contended: contended.load(Ordering::Relaxed),
            failed: failed.load(Ordering::Relaxed),
            lost: lost.load(Ordering::Relaxed),
            handed_over: self.inner.queues.handed_over(),
        }
    }

    /// What the manager has in hand; all zero but the connections when nothing is held or waited
    /// for. For tests of this project.
    #[doc(hidden)]
    #[must_use]
    pub fn in_hand(&self) -> InHand {
        let Inner { queues, renewer, flights, driver, .. } = &*self.inner;
        InHand {
            keys: queues.len(),
            leases: renewer.len(),
            flights: flights.len(),
            tasks: driver.tasks(),
            timers: driver.timers(),
            connections: match &self.inner.store {
                Store::Memory(_) => 0,
                #[cfg(feature = "redis")]
                Store::Redis(store) => store.connections(),
            },
        }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

/// What [`LockStats`] tells, but for what the queues count.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) acquired: AtomicU64,
    pub(crate) contended: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) lost: AtomicU64,
}

/// What a manager has done; see [`LockManager::stats`]. Each number only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockStats {
    /// How many locks were acquired.
    pub acquired: u64,
    /// How many callers gave up since somebody else held the lock, tries that did not wait among them.
    pub contended: u64,
    /// How many callers got no lock since the server could not be asked.
    pub failed: u64,
    /// How many leases had ended before their bodies did, or before they were released.
    pub lost: u64,
    /// How often a lock went from one caller of this manager to the next without a word to the
    /// server.
    pub handed_over: u64,
}

/// See [`LockManager::in_hand`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InHand {
    /// Keys that are held or waited for, or whose release is on its way.
    pub keys: usize,
    /// Leases that are held.
    pub leases: usize,
    /// Single flights, those included whose values are kept.
    pub flights: usize,
    /// Tasks of the manager's thread, and acquisitions and releases that are under way.
    pub tasks: usize,
    /// Timers that run.
    pub timers: usize,
    /// Connections that are open, or being opened.
    pub connections: usize,
}

impl fmt::Debug for LockManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockManager")
            .field("store", &self.inner.store)
            .field("timeout", &self.inner.defaults.timeout)
            .field("expire", &self.inner.defaults.expire)
            .finish_non_exhaustive()
    }
}

/// Makes a [`LockManager`]; see [`LockManager::builder`].
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
    /// How long to wait for another holder where an option or attribute does not say it. The
    /// default is 2 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long a lease lasts where an option or attribute does not say it: from 100 ms to 24 h.
    /// The default is 10 s.
    pub fn expire(mut self, expire: Duration) -> Self {
        self.expire = expire;
        self
    }

    /// How long one request to the server may take, from 10 ms to 1 min; never more than half of
    /// a lease. The default is 1 s.
    pub fn attempt_timeout(mut self, attempt_timeout: Duration) -> Self {
        self.attempt_timeout = attempt_timeout;
        self
    }

    /// Whether the attribute and [`LockManager::run`] return without waiting for the answer to the
    /// release. A failure is logged then, and tried again. The default is `false`: when the caller
    /// goes on, the lock is free.
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
        Ok(self.build_in_memory(store))
    }

    /// Connects to a Redis server; see [`LockManager::connect`].
    ///
    /// # Errors
    /// Those of [`LockManager::connect`], and [`LockError::InvalidOption`].
    #[cfg(feature = "redis")]
    pub async fn connect(self, url: &str) -> Result<LockManager, LockError> {
        let (manager, store) = self.redis(url)?;
        let error = |error| LockError::connect(store.server(), error);
        manager.inner.start().map_err(error)?;
        store.check(Moment::now().after(CONNECT_TIMEOUT)).await.map_err(error)?;
        Ok(manager)
    }

    /// The same without connecting: the first acquisition does. For programs that must start
    /// before their servers do.
    ///
    /// # Errors
    /// [`LockError::Connect`] if the URL cannot be read, and [`LockError::InvalidOption`].
    #[cfg(feature = "redis")]
    pub fn connect_lazy(self, url: &str) -> Result<LockManager, LockError> {
        Ok(self.redis(url)?.0)
    }

    #[cfg(feature = "redis")]
    fn redis(self, url: &str) -> Result<(LockManager, RedisStore), LockError> {
        self.check()?;
        let (driver, owners) = (Arc::new(Driver::new()), Arc::new(Owners::new()));
        #[cfg(feature = "tls")]
        let tls = self.tls.as_ref();
        #[cfg(not(feature = "tls"))]
        let tls = None;
        let (store, inbox) = RedisStore::new(
            url,
            tls,
            Arc::clone(&driver),
            Arc::clone(&owners),
            self.attempt_timeout,
        )
        .map_err(|error| LockError::connect("Redis", error))?;
        Ok((self.build(store.clone().into(), driver, owners, Some(inbox)), store))
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

    fn build_in_memory(self, store: MemoryStore) -> LockManager {
        self.build(store.into(), Arc::new(Driver::new()), Arc::new(Owners::local()), None)
    }

    fn build(
        self,
        store: Store,
        driver: Arc<Driver>,
        owners: Arc<Owners>,
        inbox: Option<Inbox>,
    ) -> LockManager {
        let (id, attempt_timeout) = (Owners::number(), self.attempt_timeout);
        let queues = Queues::new(id, store.clone(), Arc::clone(&driver), owners, attempt_timeout);
        let queues = Arc::new(queues);
        let renewer =
            Renewer::new(store.clone(), Arc::clone(&driver), Arc::clone(&queues), attempt_timeout);
        let inner = Inner {
            id,
            store,
            driver,
            queues,
            renewer: Arc::new(renewer),
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
        };
        LockManager { inner: Arc::new(inner) }
    }
}
