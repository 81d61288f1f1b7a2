//! The flights of a manager: the caller that computes, the callers that wait, and the outcome.
//!
//! A lead that becomes free is handed to no waiter. One waiter is woken, and the first caller that is polled
//! takes the lead. If it is still free after [`PATIENCE`], all are woken: the first waiter may stay unpolled.

use std::{
    any::{Any, TypeId},
    collections::{BTreeMap, HashMap},
    future::poll_fn,
    pin::{Pin, pin},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::sync::{Notify, futures::Notified};

use crate::{
    clock::Instant,
    driver::Driver,
    error::LockError,
    key::LockKey,
    mutex::{Mutex, MutexGuard},
    signal::{Given, Signal},
    unharmed::unharmed,
};

/// How long one waiter may leave a free lead alone before all are woken.
const PATIENCE: Duration = Duration::from_millis(100);

/// What callers share: those of another type, or without a lock, have flights of their own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FlightId {
    pub(crate) key: LockKey,
    pub(crate) value: TypeId,
    pub(crate) local: bool,
    /// The version of the record; 0 without one.
    pub(crate) version: u32,
}

/// A value, or an error that is shared, of a type that its [`FlightId`] or its reader knows.
pub(crate) type SharedValue = Arc<dyn Any + Send + Sync>;

/// What came of a flight.
#[derive(Clone)]
pub(crate) enum FlightOutcome {
    Value(SharedValue),
    Failure(SharedValue),
}

/// All flights of a manager.
#[derive(Default)]
pub(crate) struct Flights {
    table: Mutex<Table>,
    closed: AtomicBool,
    /// Ends computations without a lock; a computation under a lock ends with its lease.
    closing: Signal,
}

#[derive(Default)]
struct Table {
    by_id: HashMap<FlightId, FlightEntry>,
    /// The flights whose values are kept, by the ends of those. They are looked at whenever a
    /// caller joins any flight.
    kept: BTreeMap<(Instant, u64), FlightId>,
    serial: u64,
}

struct FlightEntry {
    flight: Arc<Flight>,
    callers: usize,
    kept: Option<(Instant, u64)>,
}

#[derive(Default)]
struct Flight {
    leadership: Arc<Leadership>,
    outcome: OnceLock<FlightOutcome>,
    /// Why the last leader did not get the lock, if none has since.
    trouble: Mutex<Option<LockError>>,
}

/// Whether a caller computes, and how the others learn of a change. It holds no user's value, since the
/// driver's thread has it for a while.
#[derive(Default)]
struct Leadership {
    led: AtomicBool,
    /// Wakes one waiter for a free lead.
    offered: Notify,
    /// Wakes all waiters.
    changed: Signal,
    /// The number of times that the lead has become free.
    freed: AtomicUsize,
    /// The driver looks after a lead that no caller takes.
    guarded: AtomicBool,
}

/// What comes of a caller's wait.
pub(crate) enum Position<'a> {
    /// The caller computes.
    Lead(Leader<'a>),
    /// Another caller has.
    Landed(FlightOutcome),
    /// The time is over. The error says why if the server was the reason.
    Late(Option<LockError>),
    /// The manager was shut down.
    ShutDown,
}

impl Flights {
    /// Joins the flight of this id, or opens it.
    pub(crate) fn join(self: &Arc<Self>, id: FlightId) -> Caller {
        let mut table = self.table.lock();
        let ended = table.take_ended(Instant::now());
        let entry = table.by_id.entry(id.clone()).or_insert_with(|| FlightEntry {
            flight: Arc::default(),
            callers: 0,
            kept: None,
        });
        entry.callers += 1;
        let flight = Arc::clone(&entry.flight);
        drop(table);
        let caller = Caller { flights: Arc::clone(self), flight, id };
        // The drop of a value is the user's code, which may panic.
        drop(ended);
        caller
    }

    /// Ends the waits, and the computations that no lease ends.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let flights: Vec<_> = self
            .table
            .lock()
            .by_id
            .values()
            .map(|entry| Arc::clone(&entry.flight.leadership))
            .collect();
        self.closing.give();
        for leadership in flights {
            leadership.changed.give();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Ready when the manager is shut down. Call it before [`is_closed`](Self::is_closed), or a shutdown in
    /// between is missed.
    pub(crate) fn closing(&self) -> Given<'_> {
        self.closing.given()
    }

    /// The number of flights, those included whose values are kept.
    pub(crate) fn len(&self) -> usize {
        self.table.lock().by_id.len()
    }
}

impl Table {
    fn take_ended(&mut self, now: Instant) -> Vec<FlightEntry> {
        let mut ended = Vec::new();
        while self.kept.first_key_value().is_some_and(|((end, _), _)| *end <= now)
            && let Some((_, id)) = self.kept.pop_first()
        {
            ended.extend(self.by_id.remove(&id));
        }
        ended
    }

    fn entry(&mut self, id: &FlightId, flight: &Arc<Flight>) -> Option<&mut FlightEntry> {
        self.by_id.get_mut(id).filter(|entry| Arc::ptr_eq(&entry.flight, flight))
    }
}

/// A caller of a flight, from the call to the outcome.
pub(crate) struct Caller {
    flights: Arc<Flights>,
    flight: Arc<Flight>,
    id: FlightId,
}

impl Caller {
    /// Waits for the outcome, or for the lead, until `deadline`.
    pub(crate) async fn turn<'a>(
        &'a self,
        driver: &'a Arc<Driver>,
        deadline: Instant,
    ) -> Position<'a> {
        let flight = &*self.flight;
        loop {
            // Registered before anything is looked at, so that no change falls in between.
            let changed = flight.leadership.changed.given();
            let offered = pin!(Some(flight.leadership.offered.notified()));
            let mut offered = Offered::enable(offered);
            if let Some(outcome) = flight.outcome.get() {
                return Position::Landed(outcome.clone());
            }
            if self.flights.is_closed() {
                return Position::ShutDown;
            }
            // A caller that is late tries once, as one without a timeout does.
            if !flight.leadership.led.swap(true, Ordering::SeqCst) {
                let leader = Leader { caller: self, driver };
                // It may have landed just now.
                match flight.outcome.get() {
                    Some(outcome) => return Position::Landed(outcome.clone()),
                    None => return Position::Lead(leader),
                }
            }
            if Instant::now() >= deadline {
                return Position::Late(flight.trouble().clone());
            }
            let mut changed = pin!(changed);
            let either = poll_fn(|context| match offered.poll(context) {
                Poll::Pending => changed.as_mut().poll(context),
                ready => ready,
            });
            driver.within(deadline, either).await;
        }
    }
}

/// The wait for the offer of a lead. Dropped with an offer, it wakes the next waiter, whose waker may panic.
struct Offered<'a, 'b>(Pin<&'a mut Option<Notified<'b>>>);

impl<'a, 'b> Offered<'a, 'b> {
    fn enable(mut notified: Pin<&'a mut Option<Notified<'b>>>) -> Self {
        if let Some(notified) = notified.as_mut().as_pin_mut() {
            notified.enable();
        }
        Self(notified)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().as_pin_mut().map_or(Poll::Ready(()), |notified| notified.poll(context))
    }
}

impl Drop for Offered<'_, '_> {
    fn drop(&mut self) {
        unharmed(|| self.0.set(None));
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let mut table = self.flights.table.lock();
        let Some(entry) = table.entry(&self.id, &self.flight) else { return };
        entry.callers -= 1;
        let over = entry.callers == 0 && entry.kept.is_none();
        let entry = if over { table.by_id.remove(&self.id) } else { None };
        drop(table);
        drop(entry);
    }
}

/// The lead of the caller that computes. If it is dropped before the flight has landed, another caller takes it.
pub(crate) struct Leader<'a> {
    caller: &'a Caller,
    driver: &'a Arc<Driver>,
}

impl Leader<'_> {
    /// The caller has the lock: from here on no caller waits for the server.
    pub(crate) fn begin(&self) {
        *self.caller.flight.trouble() = None;
    }

    /// The lock was not acquired.
    pub(crate) fn trouble(&self, error: &LockError) {
        *self.caller.flight.trouble() = (!error.is_contended()).then(|| error.clone());
    }

    /// Gives the value to all callers that have joined by now. With `keep`, callers that join within that time
    /// get it, too; otherwise they start a new flight.
    pub(crate) fn land<T: Clone + Send + Sync + 'static>(
        self,
        value: T,
        keep: Option<Duration>,
    ) -> T {
        let Caller { flights, flight, id } = self.caller;
        let now = Instant::now();
        let mut table = flights.table.lock();
        let alone = match (table.entry(id, flight).map(|entry| entry.callers), keep) {
            (Some(_), Some(keep)) => {
                table.serial += 1;
                let slot = (now + keep, table.serial);
                table.kept.insert(slot, id.clone());
                if let Some(entry) = table.by_id.get_mut(id) {
                    entry.kept = Some(slot);
                }
                false
            }
            (callers, _) => {
                // What is removed is the flight of this leader, which holds no value yet.
                if callers.is_some() {
                    table.by_id.remove(id);
                }
                callers == Some(1)
            }
        };
        drop(table);
        if alone {
            return value;
        }
        let value = Arc::new(value);
        let _ = flight.outcome.set(FlightOutcome::Value(Arc::clone(&value) as SharedValue));
        drop(self);
        T::clone(&value)
    }

    /// Gives the error to all callers that have joined by now. A later caller starts a new flight.
    pub(crate) fn crash(self, error: SharedValue) {
        let Caller { flights, flight, id } = self.caller;
        let mut table = flights.table.lock();
        if table.entry(id, flight).is_some() {
            table.by_id.remove(id);
        }
        drop(table);
        let _ = flight.outcome.set(FlightOutcome::Failure(error));
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let Caller { flights, flight, id } = self.caller;
        if flight.outcome.get().is_some() {
            // The lead stays taken: no caller needs it any more.
            flight.leadership.changed.give();
            return;
        }
        flight.leadership.freed.fetch_add(1, Ordering::SeqCst);
        flight.leadership.led.store(false, Ordering::SeqCst);
        // A caller that joins from here on finds the lead free.
        if flights.table.lock().entry(id, flight).is_some_and(|entry| entry.callers > 1) {
            flight.leadership.offer(self.driver);
        }
    }
}

impl Leadership {
    /// Wakes one waiter for a free lead.
    fn offer(self: &Arc<Self>, driver: &Arc<Driver>) {
        unharmed(|| self.offered.notify_one());
        if self.guarded.swap(true, Ordering::SeqCst) {
            return;
        }
        let (leadership, timers) = (Arc::clone(self), Arc::clone(driver));
        driver.spawn(async move { leadership.guard(&timers).await });
    }

    /// Wakes all waiters if no caller takes the lead. It ends after that, or when the lead is taken for
    /// [`PATIENCE`]: a waiter only goes to sleep while the lead is taken, and a lead that becomes free gets
    /// another guard.
    async fn guard(&self, timers: &Driver) {
        loop {
            let freed = self.freed.load(Ordering::SeqCst);
            timers.sleep_until(Instant::now() + PATIENCE).await;
            if self.freed.load(Ordering::SeqCst) != freed {
                continue;
            }
            let is_led = || self.led.load(Ordering::SeqCst);
            if !is_led() {
                self.guarded.store(false, Ordering::SeqCst);
                return self.changed.give();
            }
            self.guarded.store(false, Ordering::SeqCst);
            // It may have become free before that was said.
            if is_led() || self.guarded.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    }
}

impl Flight {
    fn trouble(&self) -> MutexGuard<'_, Option<LockError>> {
        self.trouble.lock()
    }
}
