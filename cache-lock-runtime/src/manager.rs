//! The lock manager: what a program has one of.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crate::{
    acquire,
    clock::Instant,
    error::LockError,
    guard::LockGuard,
    key::LockKey,
    manager_core::{Core, Counts},
    options::LockOptions,
    scope,
    store::memory::MemoryStore,
};

pub use self::{
    builder::LockManagerBuilder,
    stats::{InHand, LockStats},
};

mod builder;
mod stats;

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
    core: Arc<Core>,
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
        LockManagerBuilder::default().build_in_memory(MemoryStore::new()).into()
    }

    /// Makes this the manager that the attribute uses, for the rest of the process.
    ///
    /// # Errors
    /// [`LockError::AlreadyInstalled`] if there is one.
    pub fn install(&self) -> Result<(), LockError> {
        scope::install(&self.core)
    }

    /// The manager that the attribute would use here: that of the innermost
    /// [scope](Self::scope), else the [installed](Self::install) one.
    ///
    /// # Errors
    /// [`LockError::NoManager`].
    pub fn current() -> Result<Self, LockError> {
        scope::core().map(Self::from)
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
        scope::with_core(Arc::clone(&self.core), future)
    }

    /// Acquires a lock, and waits for another holder for as long as the options say.
    ///
    /// # Errors
    /// [`LockError::Contended`] if another holder had it all that time; [`LockError::Backend`] if
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
        acquire::acquire(&self.core, key.into(), options).await
    }

    /// Acquires a lock without waiting; `None` if it is held.
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
        let Core { store, attempt_timeout, .. } = &*self.core;
        if self.core.is_closed() {
            return Err(LockError::ShutDown);
        }
        let error = |source| LockError::ping(store.server(), source);
        self.core.start().map_err(error)?;
        let give_up = Instant::now() + *attempt_timeout;
        // The extension of no lease at all: a script that every user of locks may run.
        store.extend(&[], give_up, |_| (), give_up).await.map(drop).map_err(error)
    }

    /// Ends the manager. Later acquisitions fail ([`LockError::ShutDown`]); held leases are lost
    /// ([`LostReason::ShutDown`](crate::LostReason::ShutDown)) and released; `local` flights end. The call waits for
    /// acquisitions and releases that are under way. Holders have one attempt (1 s) to let go before their locks are
    /// taken from them. It returns after three attempts (3 s) at most, also when the server is silent.
    ///
    /// Call it before the program ends: otherwise the last locks outlive it, for a lease.
    ///
    /// # Cancel safety
    /// Steps already started continue in the background; call it again to wait for them.
    pub async fn shutdown(&self) {
        let Core { renewer, queues, driver, attempt_timeout, .. } = &*self.core;
        self.core.close();
        if driver.is_another_process() {
            return; // What is held is the parent's.
        }
        queues.close();
        renewer.close();
        #[cfg(feature = "single-flight")]
        self.core.flights.close();
        driver.within(Instant::now() + *attempt_timeout, renewer.all_left()).await;
        for lease in renewer.take_ended() {
            self.core.take_away(&lease);
        }
        driver.within(Instant::now() + *attempt_timeout * 2, driver.idle()).await;
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
        let Counts { acquired, contended, failed, lost } = &self.core.counts;
        LockStats {
            acquired: acquired.load(Ordering::Relaxed),
            contended: contended.load(Ordering::Relaxed),
            failed: failed.load(Ordering::Relaxed),
            lost: lost.load(Ordering::Relaxed),
            handed_over: self.core.queues.handed_over(),
        }
    }

    /// What the manager has in hand; all zero but the connections when nothing is held or waited
    /// for. For tests of this project.
    #[doc(hidden)]
    #[must_use]
    pub fn in_hand(&self) -> InHand {
        let Core { queues, renewer, driver, .. } = &*self.core;
        InHand {
            keys: queues.len(),
            leases: renewer.len(),
            #[cfg(feature = "single-flight")]
            flights: self.core.flights.len(),
            tasks: driver.tasks(),
            timers: driver.timers(),
            connections: self.core.store.connections(),
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl From<Arc<Core>> for LockManager {
    fn from(core: Arc<Core>) -> Self {
        Self { core }
    }
}

impl fmt::Debug for LockManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockManager")
            .field("store", &self.core.store)
            .field("timeout", &self.core.defaults.timeout)
            .field("expire", &self.core.defaults.expire)
            .finish_non_exhaustive()
    }
}
