//! How many requests are in flight over one connection.
//!
//! A server carries requests out one after the other, so beyond a small number in flight each further
//! one only waits, and an attempt that counts from its sending runs out in that wait. The window keeps
//! the number near the least that keeps the server busy. Requests without room stand in a backlog, first
//! come, first served, releases before acquisitions. Renewals are few, and pass the window by.

use std::{
    collections::BTreeMap,
    fmt, mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::{
    clock::Instant,
    driver::Driver,
    mutex::{Mutex, MutexGuard},
    signal::wake_all,
    unharmed::unharmed,
};

/// The purpose of a request. Releases are sent first: the waiters of a lock wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Releases,
    Acquires,
}

/// A caller whose turn has come and that is not polled has its room taken back, and stands in the backlog
/// again when it is polled: its future may stay unpolled for any time. Its time is over when a
/// caller that was given its turn so much later has taken it.
const SKIPPED: Duration = Duration::from_millis(10);
/// A runtime that is blocked polls no caller: then the time is over when none has taken its turn for so
/// long. A busy one gets to all of them, however long that takes.
const BLOCKED: Duration = Duration::from_millis(100);

/// The requests in flight over one connection, and those that are still to be sent.
pub(super) struct Window {
    driver: Arc<Driver>,
    state: Mutex<Traffic>,
}

struct Traffic {
    /// With those whose turn it is.
    in_flight: usize,
    /// The number of requests in flight that were answered.
    answered: u64,
    limit: Limit,
    /// The wakers of the requests that wait for room.
    backlog: [BTreeMap<u64, Waker>; 2],
    /// The requests that were given room and are unpolled since, by their serial numbers, and when.
    turns: BTreeMap<u64, Instant>,
    /// When a turn was taken last.
    taken: Instant,
    /// When the last of those that were taken had been given.
    taken_of: Instant,
    serial: u64,
    /// A task of the driver takes back the room of callers that are not polled.
    watched: bool,
    closed: bool,
}

/// Whether a request finds room.
pub(super) enum Room {
    /// It may be sent now.
    Now(Permit),
    Full,
    /// The connection is not in use any more.
    Closed,
}

impl Window {
    pub(super) fn new(driver: Arc<Driver>) -> Arc<Self> {
        Arc::new(Self { driver, state: Mutex::new(Traffic::new()) })
    }

    /// Room for a request, if there is any and no earlier request waits for it.
    pub(super) fn enter(self: &Arc<Self>, lane: Lane) -> Room {
        let mut state = self.state.lock();
        if state.closed {
            return Room::Closed;
        }
        if state.has_room() && !state.is_awaited(lane) {
            state.in_flight += 1;
            drop(state);
            return Room::Now(Permit::new(Arc::clone(self)));
        }
        state.limit.reached();
        Room::Full
    }

    /// Waits for room. `None` if the connection is not in use any more.
    ///
    /// # Cancel safety
    /// Dropped, it leaves the backlog.
    pub(super) fn turn(self: &Arc<Self>, lane: Lane) -> Admission {
        Admission { window: Arc::clone(self), lane, serial: None }
    }

    /// The number of requests that were answered so far.
    pub(super) fn answered(&self) -> u64 {
        self.state.lock().answered
    }

    /// The least time that an answer has taken lately; zero if there was none yet.
    pub(super) fn latency(&self) -> Duration {
        self.state.lock().limit.base.unwrap_or_default()
    }

    /// The connection is not used any more: what was not sent is not sent.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let backlog = mem::take(&mut state.backlog);
        drop(state);
        wake_all(backlog.into_iter().flat_map(BTreeMap::into_values));
    }

    /// A request was not answered in time: the server has enough to do.
    pub(super) fn overdue(&self) {
        self.state.lock().limit.overdue();
    }

    /// A request is answered that was sent then, or is given up.
    fn leave(&self, answered: Option<Instant>) {
        let mut state = self.state.lock();
        state.in_flight -= 1;
        if let Some(sent) = answered {
            state.answered += 1;
            let waiting = state.is_awaited(Lane::Acquires);
            let in_flight = state.in_flight;
            state.limit.answered(Instant::now(), sent, in_flight, waiting);
        }
        give_turns(state);
    }

    /// Has the driver look after those whose turn comes, while any wait.
    fn watch(self: &Arc<Self>, mut state: MutexGuard<'_, Traffic>) {
        if mem::replace(&mut state.watched, true) {
            return;
        }
        drop(state);
        let Some(runtime) = self.driver.handle() else { return };
        let window = Arc::clone(self);
        runtime.spawn(async move {
            loop {
                window.driver.sleep_until(Instant::now() + SKIPPED).await;
                let mut state = window.state.lock();
                state.take_back(Instant::now());
                if state.backlog.iter().all(BTreeMap::is_empty) {
                    state.watched = false;
                    return;
                }
                give_turns(state);
            }
        });
    }
}

/// Gives waiting requests their turns while there is room.
fn give_turns(mut state: MutexGuard<'_, Traffic>) {
    // Mostly it is one, for which no list is needed.
    let first = state.next();
    let more: Vec<_> = std::iter::from_fn(|| state.next()).collect();
    drop(state);
    wake_all(first.into_iter().chain(more));
}

impl Traffic {
    fn new() -> Self {
        let never = Instant::from_nanos(0);
        Self {
            in_flight: 0,
            answered: 0,
            limit: Limit::default(),
            backlog: Default::default(),
            turns: BTreeMap::new(),
            taken: never,
            taken_of: never,
            serial: 0,
            watched: false,
            closed: false,
        }
    }

    fn has_room(&self) -> bool {
        self.in_flight < self.limit.size()
    }

    /// Whether the backlog has requests that come before one of this lane.
    fn is_awaited(&self, lane: Lane) -> bool {
        let releases = !self.backlog[Lane::Releases as usize].is_empty();
        let acquires = !self.backlog[Lane::Acquires as usize].is_empty();
        releases || lane == Lane::Acquires && acquires
    }

    /// Gives the next waiting request its turn, if there is room.
    fn next(&mut self) -> Option<Waker> {
        if !self.has_room() {
            return None;
        }
        let (serial, waker) = self.backlog.iter_mut().find_map(BTreeMap::pop_first)?;
        self.in_flight += 1;
        self.turns.insert(serial, Instant::now());
        Some(waker)
    }

    fn take_back(&mut self, now: Instant) {
        let before = self.turns.len();
        let (taken, taken_of) = (self.taken, self.taken_of);
        self.turns
            .retain(|_, &mut given| taken_of < given + SKIPPED && now < taken.max(given) + BLOCKED);
        self.in_flight -= before - self.turns.len();
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Window")
            .field("in_flight", &state.in_flight)
            .field("limit", &state.limit)
            .field("backlog", &state.backlog.iter().map(BTreeMap::len).sum::<usize>())
            .finish_non_exhaustive()
    }
}

/// Room for one request, until it is answered or given up.
#[must_use]
pub(super) struct Permit {
    window: Arc<Window>,
    sent: Instant,
    answered: bool,
}

impl Permit {
    fn new(window: Arc<Window>) -> Self {
        Self { window, sent: Instant::now(), answered: false }
    }

    /// The request was answered.
    pub(super) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.window.leave(self.answered.then_some(self.sent));
    }
}

/// See [`Window::turn`].
#[must_use]
pub(super) struct Admission {
    window: Arc<Window>,
    lane: Lane,
    /// Its place in the order of the backlog, once it was polled.
    serial: Option<u64>,
}

impl Future for Admission {
    type Output = Option<Permit>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Permit>> {
        // Cloned and dropped outside of the lock, as both run code of the waker's.
        let mut waker = context.waker().clone();
        let window = Arc::clone(&self.window);
        let mut state = window.state.lock();
        let serial = *self.serial.get_or_insert_with(|| {
            state.serial += 1;
            state.serial
        });
        if let Some(given) = state.turns.remove(&serial) {
            state.taken = Instant::now();
            state.taken_of = state.taken_of.max(given);
            self.serial = None;
            drop(state);
            return Poll::Ready(Some(Permit::new(window)));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        if let Some(before) = state.backlog[self.lane as usize].get_mut(&serial) {
            mem::swap(before, &mut waker);
            drop(state);
            return Poll::Pending;
        }
        // It comes for the first time, or has missed its turn. There may be room by now.
        if state.has_room() && !state.is_awaited(self.lane) {
            state.in_flight += 1;
            self.serial = None;
            drop(state);
            return Poll::Ready(Some(Permit::new(window)));
        }
        state.limit.reached();
        state.backlog[self.lane as usize].insert(serial, waker);
        window.watch(state);
        Poll::Pending
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let Some(serial) = self.serial else { return };
        let mut state = self.window.state.lock();
        let waker = state.backlog[self.lane as usize].remove(&serial);
        if state.turns.remove(&serial).is_some() {
            state.in_flight -= 1;
            give_turns(state);
        } else {
            drop(state);
        }
        unharmed(|| drop(waker));
    }
}

/// The window's size: as many requests as keep the server busy, and some more.
///
/// The difference between the least latency and the mean one tells how many of the requests in flight
/// wait for each other (L. Brakmo, L. Peterson, *TCP Vegas*, 1995). The least one is measured anew from
/// time to time with few in flight, or a queue that never drains would pass for distance (N. Cardwell
/// et al., *BBR*, 2016).
#[derive(Debug)]
struct Limit {
    size: usize,
    /// The least latency, and since when it is known.
    base: Option<Duration>,
    base_since: Instant,
    /// The base is being measured: since when few are in flight, once they are.
    measuring: Option<Option<Instant>>,
    /// Start of the epoch whose answers are counted.
    epoch: Instant,
    answers: u32,
    /// The sum over these answers.
    latencies: Duration,
    /// A request has found no room in this epoch.
    full: bool,
}

/// The size while the base is measured.
const MEASURING: usize = 2;
const SMALLEST: usize = 16;
const FIRST: usize = 64;
const LARGEST: usize = 16 * 1024;

/// The window grows while fewer requests than this wait for each other, or a quarter of it.
const FEW: usize = 64;
/// It shrinks when more do, or half of it.
const MANY: usize = 192;

/// It shrinks as well when the mean latency exceeds the least by this time, or by half of the least: the
/// shortest attempt is 50 ms.
const LONG: Duration = Duration::from_millis(20);

/// The age at which the base is measured anew.
const BASE_LASTS: Duration = Duration::from_secs(10);

impl Default for Limit {
    fn default() -> Self {
        Self {
            size: FIRST,
            base: None,
            base_since: Instant::from_nanos(0),
            measuring: None,
            epoch: Instant::from_nanos(0),
            answers: 0,
            latencies: Duration::ZERO,
            full: false,
        }
    }
}

impl Limit {
    fn size(&self) -> usize {
        if self.measuring.is_some() { MEASURING } else { self.size }
    }

    /// A request has found no room.
    fn reached(&mut self) {
        self.full = true;
    }

    /// A request that was sent then was answered now. `waiting`: others are still to be sent.
    fn answered(&mut self, now: Instant, sent: Instant, in_flight: usize, waiting: bool) {
        let latency = now - sent;
        if let Some(since) = &mut self.measuring {
            match since {
                None if in_flight < MEASURING => *since = Some(now),
                Some(since) if *since <= sent => self.measured(now, latency),
                _ => {}
            }
            return;
        }
        match self.base {
            Some(base) if latency >= base => {
                if self.base_since + BASE_LASTS <= now {
                    if waiting {
                        self.measuring = Some(None);
                    } else {
                        self.measured(now, latency);
                    }
                }
            }
            _ => self.measured(now, latency),
        }
        self.full |= waiting;
        self.answers += 1;
        self.latencies += latency;
        // The first answer to a request of this epoch ends it.
        if self.epoch <= sent {
            self.adapt();
            self.begin(now);
        }
    }

    fn measured(&mut self, now: Instant, latency: Duration) {
        self.base = Some(latency);
        self.base_since = now;
        if self.measuring.take().is_some() {
            self.begin(now);
        }
    }

    fn begin(&mut self, now: Instant) {
        self.epoch = now;
        (self.answers, self.latencies, self.full) = (0, Duration::ZERO, false);
    }

    fn adapt(&mut self) {
        let mean = (self.latencies / self.answers.max(1)).max(Duration::from_nanos(1));
        let base = self.base.unwrap_or_default().min(mean);
        let moving = self.size as f64 * base.as_secs_f64() / mean.as_secs_f64();
        let waiting = self.size.saturating_sub(moving as usize);
        let (delay, long) = (mean - base, LONG.max(base / 2));
        if waiting > MANY.max(self.size / 2) || delay > long {
            self.size = (self.size - self.size / 8).max(SMALLEST);
        } else if self.full && waiting < FEW.max(self.size / 4) && delay < long / 2 {
            // Far from what the server can do, it is reached within a few answers.
            let far = waiting < FEW.max(self.size / 4) / 2;
            let more = if far { self.size } else { self.size / 8 };
            self.size = (self.size + more).min(LARGEST);
        }
    }

    fn overdue(&mut self) {
        self.size = (self.size - self.size / 8).max(SMALLEST);
    }
}

#[cfg(test)]
mod tests;
