//! The renewer: extends the leases of one manager for as long as they are held, and notices when
//! one is over.

use std::{
    mem,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::{
    clock::Instant,
    driver::Driver,
    error::{BackendError, LostReason},
    key_queues::KeyQueues,
    lease::{Lease, Schedule, attempt, drift},
    log,
    mutex::Mutex,
    protocol::messages::{Extended, Extension},
    signal::Signal,
    store::Store,
    timer_queue::TimerQueue,
};

/// A lock that is held for so many of its leases is worth a line in the log.
const LONG_HOLD: u32 = 10;

/// So many leases are extended by one request: a server serves no other client meanwhile.
const BATCH: usize = 256;

/// All leases of a manager, each with the time at which something has to be done about it.
#[derive(Debug)]
pub(crate) struct Renewer {
    timers: TimerQueue<Arc<Lease>>,
    store: Store,
    driver: Arc<Driver>,
    queues: Arc<KeyQueues>,
    /// The longest time that one request may take.
    attempt: Duration,
    closed: AtomicBool,
    /// Leases that were still held when the renewer closed.
    ended: Mutex<Vec<Arc<Lease>>>,
    left: Signal,
}

impl Renewer {
    pub(crate) fn new(
        store: Store,
        driver: Arc<Driver>,
        queues: Arc<KeyQueues>,
        attempt: Duration,
    ) -> Self {
        Self {
            timers: TimerQueue::new(),
            store,
            driver,
            queues,
            attempt,
            closed: AtomicBool::new(false),
            ended: Mutex::default(),
            left: Signal::default(),
        }
    }

    /// The number of leases that are looked after.
    pub(crate) fn len(&self) -> usize {
        self.timers.len()
    }

    /// Looks after a lease from now on, until it is over.
    pub(crate) fn enter(&self, lease: &Arc<Lease>) {
        self.enter_for(lease, next_look(lease));
    }

    /// Enters a lease for a time, in place of the one that it was entered for.
    fn enter_for(&self, lease: &Arc<Lease>, due: Instant) {
        let mut schedule = lease.schedule();
        if let Schedule::In(slot) = *schedule {
            self.timers.remove(slot);
        }
        if !matches!(*schedule, Schedule::Over) {
            *schedule = Schedule::In(self.timers.insert(due, Arc::clone(lease)));
        }
        drop(schedule);
        // Read after the timer is set: `close` reads the timers after it has set this.
        if self.closed.load(Ordering::SeqCst) {
            self.end_all();
        }
    }

    /// Its holder has let it go.
    pub(crate) fn leave(&self, lease: &Lease) {
        let before = mem::replace(&mut *lease.schedule(), Schedule::Over);
        if let Schedule::In(slot) = before {
            self.timers.remove(slot);
        }
        if self.closed.load(Ordering::SeqCst) {
            self.left.give();
        }
    }

    /// Does what is due, for ever. For the driver.
    pub(crate) async fn run(self: Arc<Self>) {
        tokio::spawn(Arc::clone(&self).follow_reconnects());
        loop {
            let mut batch = Vec::new();
            for lease in self.timers.due().await {
                // A log that panics must not cost all leases their renewal.
                let looked = AssertUnwindSafe(|| self.look_after(&lease));
                match panic::catch_unwind(looked) {
                    Ok(true) => batch.push(lease),
                    Ok(false) => {}
                    Err(_) => self.enter_for(&lease, lease.deadline()),
                }
                if batch.len() == BATCH {
                    self.send(mem::take(&mut batch));
                }
            }
            if !batch.is_empty() {
                self.send(batch);
            }
        }
    }

    /// Looks at all leases when a connection was lost, and when one is there again, for ever: the
    /// server may have been restarted without its data.
    async fn follow_reconnects(self: Arc<Self>) {
        loop {
            self.store.reconnected().await;
            let mut leases = self.timers.take_all();
            leases.retain(|lease| {
                lease.set_doubtful(true);
                // They stay on the timers, for their ends.
                let entered = AssertUnwindSafe(|| self.enter_for(lease, lease.deadline()));
                let _ = panic::catch_unwind(entered);
                !lease.is_over() && lease.lost_reason().is_none()
            });
            for batch in leases.chunks(BATCH) {
                self.send(batch.to_vec());
            }
            // The next try of an extension may be far: until then no other request opens a connection.
            if let Some(last) = leases.iter().map(|lease| lease.deadline()).max() {
                let store = self.store.clone();
                tokio::spawn(async move { store.reconnect(last).await });
            }
        }
    }

    /// Looks at a lease whose time on the timers has come. True if it is to be extended.
    fn look_after(&self, lease: &Arc<Lease>) -> bool {
        if lease.lost_reason().is_some() {
            // The waiters of this process do not wait for the end of the body.
            self.queues.lost(lease);
            return false;
        }
        if lease.is_over() {
            return false;
        }
        if Instant::now() < next_look(lease) && !lease.is_doubtful() {
            // It was extended by its holder.
            self.enter(lease);
            return false;
        }
        // It keeps a timer, for its end, and for a `close` meanwhile.
        self.enter_for(lease, lease.deadline());
        true
    }

    fn send(self: &Arc<Self>, leases: Vec<Arc<Lease>>) {
        let renewer = Arc::clone(self);
        self.driver.spawn(async move { renewer.extend(&leases).await });
    }

    /// Extends leases by one request. Without an answer in time they are on the timers again soon; an
    /// answer that comes later still counts, since the leases count from when it was sent.
    async fn extend(&self, leases: &[Arc<Lease>]) {
        let now = Instant::now();
        let extensions: Vec<_> = leases.iter().map(|lease| extension(lease, now)).collect();
        let (mut soonest, mut latest) = (self.attempt, now);
        for (lease, extension) in leases.iter().zip(&extensions) {
            soonest = attempt(soonest, lease.settings.expire);
            latest = latest.max(lease.deadline());
            // It may be sent as late as that.
            lease.extends(now + soonest, extension.expire);
        }
        let on_overdue = |error: &BackendError| self.try_again(leases, error);
        let overdue = now + soonest;
        match self.store.extend(&extensions, overdue, on_overdue, latest).await {
            Ok((sent_at, kept)) => {
                for ((lease, extension), kept) in leases.iter().zip(&extensions).zip(kept) {
                    self.extended(lease, extension, sent_at, kept);
                }
            }
            Err(error) => self.try_again(leases, &error),
        }
    }

    fn extended(
        &self,
        lease: &Arc<Lease>,
        extension: &Extension,
        sent_at: Instant,
        kept: Extended,
    ) {
        match kept {
            Extended::Kept => {
                lease.extended(Instant::now(), sent_at, extension.expire);
                lease.renewal_failed(false);
                lease.set_doubtful(false);
                warn_of_long_hold(lease, sent_at);
                if !lease.is_over() {
                    self.enter(lease);
                }
            }
            Extended::Gone => {
                lease.lose(LostReason::Gone);
                // By now the next section may run under the same token.
                if let Some(next) = self.queues.held_under(lease) {
                    next.lose(LostReason::Gone);
                    self.queues.lost(&next);
                }
            }
        }
    }

    fn try_again(&self, leases: &[Arc<Lease>], error: &BackendError) {
        let now = Instant::now();
        for lease in leases {
            if lease.is_over() || lease.lost_reason().is_some() {
                continue;
            }
            let expire = lease.settings.expire;
            let pause = (expire / 20).clamp(Duration::from_millis(5), Duration::from_millis(250));
            self.enter_for(lease, (now + pause).min(lease.deadline()));
            if lease.settings.renew && lease.renewal_failed(true) {
                let left = lease.deadline() - now;
                log::warn!(
                    key = %lease.key, %error, ?left, "lock not renewed yet; trying again"
                );
            }
        }
    }

    /// Ends all leases, those that are still to be entered as well.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.end_all();
    }

    fn end_all(&self) {
        let leases = self.timers.take_all();
        let lost = leases.iter().filter(|lease| lease.shut_down()).count();
        self.ended.lock().extend(leases);
        if lost > 0 {
            log::warn!(lost, "locks lost: {}", LostReason::ShutDown);
        }
    }

    /// Waits until every lease that [`close`](Self::close) ended was let go of by its holder.
    pub(crate) async fn all_left(&self) {
        loop {
            let left = self.left.given();
            self.ended.lock().retain(|lease| !matches!(*lease.schedule(), Schedule::Over));
            if self.ended.lock().is_empty() {
                return;
            }
            left.await;
        }
    }

    /// Takes out the leases whose holders have not let go.
    pub(crate) fn take_ended(&self) -> Vec<Arc<Lease>> {
        mem::take(&mut *self.ended.lock())
    }
}

/// When something has to be done next: a renewal as soon as a third of the lease is used up, so
/// that there is time for several more tries; else its end.
fn next_look(lease: &Lease) -> Instant {
    let (deadline, expire) = (lease.deadline(), lease.settings.expire);
    let at_most = lease.last_end().is_some_and(|end| deadline + drift(expire) >= end);
    if !lease.settings.renew || at_most {
        return deadline;
    }
    deadline - (expire / 3 * 2).saturating_sub(drift(expire))
}

fn extension(lease: &Lease, now: Instant) -> Extension {
    let expire = lease.settings.expire;
    let expire = lease.last_end().map_or(expire, |end| expire.min(end - now));
    // After a reconnect a lease without renewal is looked at, too. It lasts no longer for that.
    let expire = if lease.settings.renew { expire } else { expire.min(lease.deadline() - now) };
    Extension { key: lease.key.clone(), token: lease.owner.clone(), expire }
}

fn warn_of_long_hold(lease: &Lease, now: Instant) {
    let (held, span) = (now - lease.acquired, lease.settings.expire.saturating_mul(LONG_HOLD));
    let spans = u32::try_from(held.as_nanos() / span.as_nanos().max(1)).unwrap_or(u32::MAX);
    if lease.settings.max_hold.is_none() && lease.is_news(spans) {
        log::warn!(
            key = %lease.key, fence = %lease.fence, ?held,
            "lock held for a long time and still being renewed; `max_hold` would end it"
        );
    }
}
