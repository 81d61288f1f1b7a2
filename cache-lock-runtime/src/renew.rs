//! The renewer: extends the leases of one manager for as long as they are held, and notices when
//! one is over.

use std::{
    mem,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

use crate::{
    agenda::Agenda,
    clock::Moment,
    driver::Driver,
    error::LostReason,
    lease::{Lease, Schedule, drift},
    store::{Extended, LockStore, Store},
};

/// A lock that is held for so many of its leases is worth a line in the log.
const LONG_HOLD: u32 = 10;

/// All leases of a manager, each with the time at which something has to be done about it.
#[derive(Debug)]
pub(crate) struct Renewer {
    agenda: Agenda<Arc<Lease>>,
    store: Store,
    driver: Arc<Driver>,
    /// The longest time that one request may take.
    attempt: Duration,
    closed: AtomicBool,
    /// Leases that were still held when the renewer closed.
    ended: Mutex<Vec<Arc<Lease>>>,
    left: Notify,
}

impl Renewer {
    pub(crate) fn new(store: Store, driver: Arc<Driver>, attempt: Duration) -> Self {
        Self {
            agenda: Agenda::new(),
            store,
            driver,
            attempt,
            closed: AtomicBool::new(false),
            ended: Mutex::default(),
            left: Notify::new(),
        }
    }

    /// The number of leases that are looked after.
    pub(crate) fn len(&self) -> usize {
        self.agenda.len()
    }

    /// Looks after a lease from now on, until it is over.
    pub(crate) fn enter(&self, lease: &Arc<Lease>) {
        self.enter_for(lease, next_look(lease));
    }

    /// Enters a lease for a time, in place of the one that it was entered for.
    fn enter_for(&self, lease: &Arc<Lease>, due: Moment) {
        let mut schedule = lease.schedule();
        if let Schedule::In(slot) = *schedule {
            self.agenda.remove(slot);
        }
        if !matches!(*schedule, Schedule::Over) {
            *schedule = Schedule::In(self.agenda.insert(due, Arc::clone(lease)));
        }
        drop(schedule);
        // Looked at after the entry is made: whoever closes looks at the entries after that.
        if self.closed.load(Ordering::SeqCst) {
            self.end_all();
        }
    }

    /// Its holder has let it go.
    pub(crate) fn leave(&self, lease: &Lease) {
        let before = mem::replace(&mut *lease.schedule(), Schedule::Over);
        if let Schedule::In(slot) = before {
            self.agenda.remove(slot);
        }
        if self.closed.load(Ordering::SeqCst) {
            self.left.notify_waiters();
        }
    }

    /// Does what is due, for ever. For the driver.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            for lease in self.agenda.due().await {
                // A log that panics must not cost all leases their renewal.
                let looked = AssertUnwindSafe(|| self.look_after(&lease));
                if panic::catch_unwind(looked).is_err() {
                    self.enter_for(&lease, lease.deadline());
                }
            }
        }
    }

    fn look_after(self: &Arc<Self>, lease: &Arc<Lease>) {
        if lease.is_over() || lease.lost_reason().is_some() {
            return;
        }
        if Moment::now() < next_look(lease) {
            // It was extended by its holder.
            self.enter(lease);
            return;
        }
        // It stays on the agenda, for its end, and for whoever closes meanwhile.
        self.enter_for(lease, lease.deadline());
        let (renewer, lease) = (Arc::clone(self), Arc::clone(lease));
        self.driver.spawn(async move { renewer.renew(lease).await });
    }

    async fn renew(&self, lease: Arc<Lease>) {
        let expire = lease.settings.expire;
        let pause = (expire / 20).clamp(Duration::from_millis(5), Duration::from_millis(250));
        let mut failed = false;
        while !lease.is_over() && lease.lost_reason().is_none() {
            let now = Moment::now();
            let wanted = lease.last_end().map_or(expire, |end| expire.min(now.until(end)));
            let give_up = now.after(self.attempt.min(expire / 2)).min(lease.deadline());
            match self.store.extend(&lease.key, &lease.owner, wanted, give_up).await {
                Ok(Extended::Kept { sent_at }) => {
                    lease.extended(sent_at, wanted);
                    warn_of_long_hold(&lease, now);
                    self.enter(&lease);
                    return;
                }
                // Not for a lease that was released meanwhile: that is over already.
                Ok(Extended::Gone) => lease.lose(LostReason::Gone),
                Err(error) => {
                    if !failed {
                        let left = now.until(lease.deadline());
                        tracing::warn!(key = %lease.key, %error, ?left, "lock not renewed yet; trying again");
                    }
                    failed = true;
                    let again = Moment::now().after(pause).min(lease.deadline());
                    self.driver.sleep_until(again).await;
                }
            }
        }
    }

    /// Ends all leases, those that are still to be entered as well.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.end_all();
    }

    fn end_all(&self) {
        let leases = self.agenda.take_all();
        for lease in &leases {
            lease.lose(LostReason::ShutDown);
        }
        self.ended().extend(leases);
    }

    /// Waits until every lease that [`close`](Self::close) ended was let go of by its holder.
    pub(crate) async fn all_left(&self) {
        loop {
            let left = self.left.notified();
            self.ended().retain(|lease| !matches!(*lease.schedule(), Schedule::Over));
            if self.ended().is_empty() {
                return;
            }
            left.await;
        }
    }

    /// Takes out the leases whose holders have not let go.
    pub(crate) fn take_ended(&self) -> Vec<Arc<Lease>> {
        mem::take(&mut *self.ended())
    }

    fn ended(&self) -> MutexGuard<'_, Vec<Arc<Lease>>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When something has to be done next: a renewal as soon as a third of the lease is used up, so
/// that there is time for several more tries; else its end.
fn next_look(lease: &Lease) -> Moment {
    let (deadline, expire) = (lease.deadline(), lease.settings.expire);
    let at_most = lease.last_end().is_some_and(|end| deadline.after(drift(expire)) >= end);
    if !lease.settings.renew || at_most {
        return deadline;
    }
    deadline.before((expire / 3 * 2).saturating_sub(drift(expire)))
}

fn warn_of_long_hold(lease: &Lease, now: Moment) {
    let (held, span) = (lease.acquired.until(now), lease.settings.expire.saturating_mul(LONG_HOLD));
    let spans = u32::try_from(held.as_nanos() / span.as_nanos().max(1)).unwrap_or(u32::MAX);
    if lease.settings.max_hold.is_none() && lease.is_news(spans) {
        tracing::warn!(
            key = %lease.key, fence = %lease.fence, ?held,
            "lock held for a long time and still being renewed; `max_hold` would end it"
        );
    }
}
