//! The guard: a lock while it is held.

use std::{
    fmt, mem,
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering},
    task::Poll,
    time::Duration,
};

use tracing::field::Empty;

#[cfg(all(feature = "serde", feature = "single-flight"))]
use crate::owner::OwnerToken;
use crate::{
    clock::Instant,
    error::{LockError, LostReason},
    fence::FencingToken,
    key::LockKey,
    key_queues::{Acquired, Ending},
    log::{self, Span},
    manager_core::Core,
    options::{OnLost, check_lease},
    protocol::messages::{Extended, Extension, ReleaseOutcome, ReleaseRequest},
    scope,
};

/// A lock that is held. Dropping it releases it.
///
/// The lease behind it is extended in the background for as long as the guard lives (unless
/// [`LockOptions::renew`](crate::LockOptions::renew) says otherwise). It can be lost all the same:
/// see [`lost`](Self::lost).
///
/// `let _ = locks.acquire(..)` drops it, and so releases the lock, at once; give it a name.
///
/// The drop does not wait for the server, works outside of a runtime and in a panicking task, and
/// is tried again in the background if the server cannot be reached; if even that fails, the lock
/// is free when its lease ends. [`release`](Self::release) waits, and tells the outcome.
#[must_use = "the lock is released when the guard is dropped"]
pub struct LockGuard {
    manager: Arc<Core>,
    acquired: Acquired,
    /// How long it was waited for.
    waited: Duration,
    state: GuardState,
}

#[derive(Debug)]
enum GuardState {
    Held,
    /// The lease has ended on this side, and the server is to be told.
    Releasing(ReleaseRequest),
    Done,
}

impl LockGuard {
    pub(crate) fn new(manager: Arc<Core>, acquired: Acquired, waited: Duration) -> Self {
        manager.counts.acquired.fetch_add(1, Ordering::Relaxed);
        manager.renewer.enter(&acquired.lease);
        Self { manager, acquired, waited, state: GuardState::Held }
    }

    /// The number of this grant, for the writes that the lock guards.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.acquired.lease.fence
    }

    /// Under which token the store knows the lock, and how long it does.
    #[cfg(all(feature = "serde", feature = "single-flight"))]
    pub(crate) fn owner(&self) -> (&OwnerToken, Duration) {
        (&self.acquired.lease.owner, self.acquired.lease.settings.expire)
    }

    /// What is locked.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.acquired.lease.key
    }

    /// How long the caller has waited for the lock, from its call to the lock in its hands.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// How long the lease lasts if it is not extended. Zero if it is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        match self.acquired.lease.lost_reason() {
            Some(_) => Duration::ZERO,
            None => self.acquired.lease.deadline() - Instant::now(),
        }
    }

    /// The lock is lost, or may be.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.acquired.lease.lost_reason().is_some()
    }

    /// Waits until the lease is lost, and says how. Never returns while the lock is held.
    ///
    /// ```
    /// # use cache_lock::{LockManager, LockOptions};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let locks = LockManager::in_memory();
    /// # async fn work() {}
    /// # mod tokio { pub use ::tokio::select; }
    /// let guard = locks.acquire("job", &LockOptions::new()).await?;
    /// tokio::select! {
    ///     () = work() => {}
    ///     reason = guard.lost() => eprintln!("stopped: {reason}"),
    /// }
    /// # Ok::<(), cache_lock::LockError>(()) }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// It can be dropped and called again; a loss in between is not missed.
    pub async fn lost(&self) -> LostReason {
        loop {
            let loss = self.acquired.lease.loss();
            if let Some(reason) = self.acquired.lease.lost_reason() {
                return reason;
            }
            loss.await;
        }
    }

    /// Extends the lease so that it ends `duration` from now, if it would end sooner. From 100 ms
    /// to 24 h.
    ///
    /// # Errors
    /// [`LockError::Lost`] if the lease is over, [`LockError::Backend`] if the server did not
    /// answer (the lease is as it was, or longer) or in a forked process, [`LockError::InvalidOption`]
    /// if the duration is out of range or would pass `max_hold`.
    ///
    /// # Cancel safety
    /// The lease is as it was, or longer.
    pub async fn extend(&self, duration: Duration) -> Result<(), LockError> {
        check_lease("extend", duration)?;
        let lost = |reason| self.acquired.lease.lost_error(reason);
        if let Some(reason) = self.acquired.lease.lost_reason() {
            return Err(lost(reason));
        }
        self.check_process()?;
        let started = Instant::now();
        if self.acquired.lease.last_end().is_some_and(|end| started + duration > end) {
            let limit = "it would pass `max_hold`";
            return Err(LockError::InvalidOption { option: "extend", value: duration, limit });
        }
        let give_up = self.manager.attempt_end(started, self.acquired.lease.settings.expire);
        let (key, token) = (self.acquired.lease.key.clone(), self.acquired.lease.owner.clone());
        // It may be sent as late as that.
        self.acquired.lease.extends(give_up, duration);
        let extension = [Extension { key, token, expire: duration }];
        let extended = self.manager.store.extend(&extension, give_up, |_| (), give_up).await;
        let (sent_at, kept) = extended.map_err(|source| {
            LockError::backend(&self.acquired.lease.key, started.elapsed(), source)
        })?;
        if kept == [Extended::Kept] {
            self.acquired.lease.extended(Instant::now(), sent_at, duration);
        } else {
            self.acquired.lease.lose(LostReason::Gone);
            self.manager.queues.lost(&self.acquired.lease);
        }
        self.acquired.lease.lost_reason().map_or(Ok(()), |reason| Err(lost(reason)))
    }

    /// Releases the lock, and waits until the server says so. Where a caller of this same manager
    /// waits for it, the lock is handed on without asking the server.
    ///
    /// # Errors
    /// [`LockError::Backend`] if the server did not answer. The release is then tried again in the
    /// background until the lease has run out. In a forked process, whose parent has the lease, it fails with
    /// [`BackendErrorKind::Forked`](crate::BackendErrorKind::Forked), and nothing is released.
    ///
    /// # Cancel safety
    /// When it is dropped before the answer has come, the lock is released in the background.
    pub async fn release(mut self) -> Result<ReleaseOutcome, LockError> {
        self.check_process()?;
        let started = Instant::now();
        let _running = self.manager.driver.running();
        let (over, in_time) = match self.state {
            GuardState::Held => self.let_go(),
            GuardState::Releasing(_) | GuardState::Done => (None, true),
        };
        if let Some(released) = over {
            return Ok(released);
        }
        let GuardState::Releasing(request) = &self.state else {
            return Ok(ReleaseOutcome::Released);
        };
        let (store, key) = (&self.manager.store, &self.acquired.lease.key);
        // However short the lease was, it is good to know what became of it.
        let give_up = started + self.manager.attempt_timeout;
        let span = Span::new(
            || tracing::debug_span!("cache_lock.release", %key, waited = Empty, outcome = Empty),
        );
        let mut released = {
            let releasing = pin!(store.release(key, request, give_up));
            span.around(releasing).await
        };
        let waited = started.elapsed();
        if let Ok(released) = &mut released {
            let passed_on = !self.manager.queues.released(&self.acquired);
            self.state = GuardState::Done;
            // A caller that came meanwhile was faster.
            if passed_on && in_time && *released == ReleaseOutcome::AlreadyExpired {
                *released = ReleaseOutcome::Released;
            }
        }
        let outcome = match &released {
            Ok(ReleaseOutcome::Released) => "released",
            Ok(ReleaseOutcome::AlreadyExpired) => "already expired",
            Ok(ReleaseOutcome::Unknown) => "unknown",
            Err(_) => "failed",
        };
        span.record(waited, outcome);
        let _entered = span.enter();
        match released {
            Ok(released) => {
                log::debug!(key = %self.acquired.lease.key, ?released, ?waited, "lock released");
                Ok(released)
            }
            Err(source) => {
                // The next try, in the background, warns if it fails as well.
                log::debug!(key = %self.acquired.lease.key, error = %source, "lock not released yet");
                Err(LockError::backend(&self.acquired.lease.key, waited, source))
            }
        }
    }

    /// The lease is the process's that acquired it.
    fn check_process(&self) -> Result<(), LockError> {
        let checked = self.manager.driver.check_process();
        checked
            .map_err(|source| LockError::backend(&self.acquired.lease.key, Duration::ZERO, source))
    }

    /// Ends the lease on this side. Returns what came of it, unless the server is still to be told,
    /// and whether it had not ended before.
    fn let_go(&mut self) -> (Option<ReleaseOutcome>, bool) {
        let (ending, in_time) = self.manager.end(&self.acquired);
        if !in_time {
            self.manager.counts.lost.fetch_add(1, Ordering::Relaxed);
        }
        let released = match ending {
            Ending::Release(_) if self.acquired.lease.lost_reason() == Some(LostReason::Gone) => {
                self.manager.queues.released(&self.acquired);
                ReleaseOutcome::AlreadyExpired
            }
            Ending::Release(request) => {
                self.state = GuardState::Releasing(request);
                return (None, in_time);
            }
            Ending::Released(released) => released,
            Ending::Over if in_time => ReleaseOutcome::Released,
            Ending::Over => ReleaseOutcome::AlreadyExpired,
        };
        self.state = GuardState::Done;
        log::debug!(key = %self.acquired.lease.key, ?released, "lock released");
        (Some(released), in_time)
    }

    /// Polls a body for as long as the lease lasts.
    ///
    /// With [`OnLost::Cancel`] the clock is looked at before each poll, and a body whose lease is
    /// over is not polled again. A body that is ready in a poll that began in time has won.
    pub(crate) async fn hold<F: Future>(
        &self,
        mut body: Pin<&mut F>,
    ) -> Result<F::Output, LockError> {
        let lease = &self.acquired.lease;
        let cancel = lease.settings.on_lost == OnLost::Cancel;
        let mut loss = std::pin::pin!(lease.loss());
        std::future::poll_fn(|context| {
            if cancel {
                // Registered before the state is looked at, so that no loss falls in between.
                let _: Poll<()> = loss.as_mut().poll(context);
                if let Some(reason) = lease.lost_reason() {
                    return Poll::Ready(Err(lease.lost_error(reason)));
                }
            }
            scope::poll_in(lease, body.as_mut(), context).map(Ok)
        })
        .await
    }

    /// Polls a body to its end, whatever becomes of the lease.
    pub(crate) async fn hold_to_end<F: Future>(&self, mut body: Pin<&mut F>) -> F::Output {
        std::future::poll_fn(|context| scope::poll_in(&self.acquired.lease, body.as_mut(), context))
            .await
    }

    /// Releases as the options or the manager say, after a body has ended, as far as that goes without
    /// waiting. Returns the guard if it has to be [released](Self::finish).
    pub(crate) fn finish_at_once(mut self) -> Option<Self> {
        let background = self.acquired.lease.settings.background_release;
        if !background && !self.manager.queues.ends_at_once(&self.acquired) {
            return Some(self);
        }
        // A shutdown waits for this thread, though the lease has left the renewer.
        let _running = self.manager.driver.running();
        if self.let_go().0.is_some() {
            return None;
        }
        // Otherwise the waiter has gone meanwhile.
        if background
            && let GuardState::Releasing(request) = mem::replace(&mut self.state, GuardState::Done)
        {
            self.manager.queues.release_nearby(&self.acquired, request);
            return None;
        }
        Some(self)
    }

    /// Releases after a body has ended. The outcome of the release never takes the place of the
    /// body's: failures are logged, and tried again in the background.
    pub(crate) async fn finish(self) {
        if let Some(guard) = self.finish_at_once() {
            let _ = guard.release().await;
        }
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        let _running = self.manager.driver.running();
        if matches!(self.state, GuardState::Held) {
            let _ = self.let_go();
        }
        if let GuardState::Releasing(request) = mem::replace(&mut self.state, GuardState::Done) {
            self.manager.queues.release_detached(&self.acquired, request);
        }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("key", &self.acquired.lease.key)
            .field("token", &self.acquired.lease.fence)
            .field("lost", &self.acquired.lease.lost_reason())
            .finish_non_exhaustive()
    }
}
