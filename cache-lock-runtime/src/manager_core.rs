//! What a manager is made of: the state that its handles, guards and scopes share.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

#[cfg(feature = "single-flight")]
use crate::flights::Flights;
use crate::{
    clock::Instant,
    driver::Driver,
    error::BackendError,
    key_queues::{Acquired, Ending, KeyQueues},
    lease::{Lease, attempt},
    mutex::Mutex,
    options::Defaults,
    protocol::messages::Inbox,
    renew::Renewer,
    store::Store,
};

pub(crate) struct Core {
    /// Tells managers apart.
    pub(crate) id: u64,
    pub(crate) store: Store,
    pub(crate) driver: Arc<Driver>,
    pub(crate) queues: Arc<KeyQueues>,
    pub(crate) renewer: Arc<Renewer>,
    #[cfg(feature = "single-flight")]
    pub(crate) flights: Arc<Flights>,
    pub(crate) defaults: Defaults,
    pub(crate) attempt_timeout: Duration,
    /// What the store tells unasked, until the thread reads it.
    pub(crate) inbox: Mutex<Option<Inbox>>,
    pub(crate) counts: Counts,
    pub(crate) closed: AtomicBool,
}

impl Core {
    /// Starts the thread, if it does not run yet.
    pub(crate) fn start(&self) -> Result<(), BackendError> {
        self.driver.start(|| {
            let inbox = self.inbox.lock().take();
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
    pub(crate) fn end(&self, acquired: &Acquired) -> (Ending, bool) {
        let in_time = self.end_lease(&acquired.lease);
        (self.queues.end(acquired, in_time), in_time)
    }

    /// Ends a lease, and has it released in the background.
    pub(crate) fn give_back(&self, acquired: &Acquired) {
        let in_time = self.end_lease(&acquired.lease);
        self.queues.give_back(acquired, in_time);
    }

    /// The same for a lease whose holder has not let go of it.
    pub(crate) fn take_away(&self, lease: &Arc<Lease>) {
        let in_time = self.end_lease(lease);
        self.queues.take_away(lease, in_time);
    }

    /// False if the lease had ended before.
    fn end_lease(&self, lease: &Lease) -> bool {
        // It comes first: no answer of the server makes the lock ours again.
        let in_time = lease.release(Instant::now());
        self.renewer.leave(lease);
        in_time
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// The longest time that one request for a lease of this length may take.
    pub(crate) fn attempt(&self, expire: Duration) -> Duration {
        attempt(self.attempt_timeout, expire)
    }

    pub(crate) fn attempt_end(&self, start: Instant, expire: Duration) -> Instant {
        start + self.attempt(expire)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.driver.stop();
    }
}

/// The numbers of [`LockStats`](crate::LockStats), but for those that the queues count.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) acquired: AtomicU64,
    pub(crate) contended: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) lost: AtomicU64,
}
