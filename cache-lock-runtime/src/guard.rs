//! The guard: a lock while it is held.

use std::{fmt, pin::Pin, sync::Arc, task::Poll, time::Duration};

use tracing::{Instrument as _, field::Empty};

use crate::{
    clock::Moment,
    driver::Running,
    error::{LockError, LostReason},
    fence::FencingToken,
    key::LockKey,
    lease::{Lease, drift},
    manager::Inner,
    options::{OnLost, check_lease},
    scope,
    store::{Extended, LockStore, Released},
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
    manager: Arc<Inner>,
    lease: Arc<Lease>,
    /// The record is known to be gone.
    done: bool,
}

impl LockGuard {
    pub(crate) fn new(manager: Arc<Inner>, lease: Lease) -> Self {
        let lease = Arc::new(lease);
        manager.renewer.enter(&lease);
        Self { manager, lease, done: false }
    }

    /// The number of this grant, for the writes that the lock guards.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.lease.fence
    }

    /// What is locked.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.lease.key
    }

    /// How long the lease lasts if it is not extended. Zero if it is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        match self.lease.lost_reason() {
            Some(_) => Duration::ZERO,
            None => Moment::now().until(self.lease.deadline()),
        }
    }

    /// The lock is not ours any more, or may not be.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lease.lost_reason().is_some()
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
            let loss = self.lease.loss();
            if let Some(reason) = self.lease.lost_reason() {
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
    /// answer (the lease is as it was, or longer), [`LockError::InvalidOption`] if the duration is
    /// out of range or would pass `max_hold`.
    ///
    /// # Cancel safety
    /// The lease is as it was, or longer.
    pub async fn extend(&self, duration: Duration) -> Result<(), LockError> {
        check_lease("extend", duration)?;
        let lost = |reason| self.lease.lost_error(reason);
        if let Some(reason) = self.lease.lost_reason() {
            return Err(lost(reason));
        }
        let started = Moment::now();
        if self.lease.last_end().is_some_and(|end| started.after(duration) > end) {
            let limit = "it would pass `max_hold`";
            return Err(LockError::InvalidOption { option: "extend", value: duration, limit });
        }
        let give_up = self.manager.attempt_end(started, self.lease.settings.expire);
        let Inner { store, .. } = &*self.manager;
        match store.extend(&self.lease.key, &self.lease.owner, duration, give_up).await {
            Ok(Extended::Kept { sent_at }) => self.lease.extended(sent_at, duration),
            Ok(Extended::Gone) => self.lease.lose(LostReason::Gone),
            Err(source) => {
                return Err(LockError::backend(
                    &self.lease.key,
                    started.until(Moment::now()),
                    source,
                ));
            }
        }
        self.lease.lost_reason().map_or(Ok(()), |reason| Err(lost(reason)))
    }

    /// Releases the lock, and waits until the server says so.
    ///
    /// # Errors
    /// [`LockError::Backend`] if the server did not answer. The release is then tried again in the
    /// background until the lease has run out.
    ///
    /// # Cancel safety
    /// When it is dropped before the answer has come, the lock is released in the background.
    pub async fn release(mut self) -> Result<Released, LockError> {
        let started = Moment::now();
        let _running = self.let_go();
        if self.done {
            return Ok(Released::AlreadyExpired);
        }
        let give_up = self.manager.attempt_end(started, self.lease.settings.expire);
        let (store, key) = (&self.manager.store, &self.lease.key);
        let span =
            tracing::debug_span!("cache_lock.release", %key, waited = Empty, outcome = Empty);
        let releasing = store.release(key, &self.lease.owner, give_up);
        let released = releasing.instrument(span.clone()).await;
        let waited = started.until(Moment::now());
        let outcome = match &released {
            Ok(Released::Released) => "released",
            Ok(Released::AlreadyExpired) => "already expired",
            Ok(Released::Unknown) => "unknown",
            Err(_) => "failed",
        };
        span.record("waited", tracing::field::debug(waited)).record("outcome", outcome);
        let _entered = span.enter();
        match released {
            Ok(released) => {
                self.done = true;
                tracing::debug!(key = %self.lease.key, ?released, ?waited, "lock released");
                Ok(released)
            }
            Err(source) => {
                tracing::warn!(key = %self.lease.key, error = %source, "lock not released yet");
                Err(LockError::backend(&self.lease.key, waited, source))
            }
        }
    }

    /// Ends the lease on this side. It comes first: nothing that the server says or does not say
    /// makes the lock ours again. A shutdown waits for what the caller does next.
    fn let_go(&mut self) -> Running {
        let running = self.manager.driver.running();
        if !self.lease.release() && self.lease.lost_reason() == Some(LostReason::Gone) {
            self.done = true;
        }
        self.manager.renewer.leave(&self.lease);
        running
    }

    /// Polls a body for as long as the lease lasts.
    ///
    /// With [`OnLost::Cancel`] the clock is looked at before each poll, and a body whose lease is
    /// over is not polled again. A body that is ready in a poll that began in time has won.
    pub(crate) async fn hold<F: Future>(
        &self,
        mut body: Pin<&mut F>,
    ) -> Result<F::Output, LockError> {
        let lease = &self.lease;
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
        std::future::poll_fn(|context| scope::poll_in(&self.lease, body.as_mut(), context)).await
    }

    /// Releases as the options or the manager say, after a body has ended. The outcome of the release never
    /// takes the place of the body's.
    pub(crate) async fn finish(self) {
        if !self.lease.settings.background_release {
            // Failures are logged, and tried again in the background.
            let _ = self.release().await;
        }
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let _running = self.let_go();
        if self.done {
            return;
        }
        let lease = &self.lease;
        let until = lease.deadline().after(drift(lease.settings.expire));
        self.manager.store.release_detached(lease.key.clone(), lease.owner.clone(), until);
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("key", &self.lease.key)
            .field("token", &self.lease.fence)
            .field("lost", &self.lease.lost_reason())
            .finish_non_exhaustive()
    }
}
