//! How many requests are in flight over one connection.
//!
//! A server carries requests out one after the other, so beyond a small number in flight each further
//! one only waits, and an attempt that counts from its sending runs out in that wait. The window keeps
//! the number near the least that keeps the server busy. Requests without room stand in a backlog, first
//! come, first served, releases before questions. Renewals are few, and pass the window by.

use std::{
    collections::BTreeMap,
    fmt, future,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use tokio::{runtime::Handle, sync::oneshot};

use crate::{clock::Moment, driver::unharmed};

/// The purpose of a request. Releases are sent first: the waiters of a lock wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Releases,
    Questions,
}

/// Sends a request. It is called when there is room for it.
type Job = Box<dyn FnOnce(Permit) + Send>;

/// The requests in flight over one connection, and those that are still to be sent.
#[derive(Default)]
pub(super) struct Window {
    state: Mutex<Traffic>,
}

#[derive(Default)]
struct Traffic {
    in_flight: usize,
    /// The number of requests in flight that were answered.
    answered: u64,
    limit: Limit,
    backlog: [BTreeMap<u64, Job>; 2],
    serial: u64,
    /// A thread is sending the backlog. Threads that make room meanwhile leave the sending to it.
    sending: bool,
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
    /// Room for a request, if there is any and no earlier request waits for it.
    pub(super) fn enter(self: &Arc<Self>, lane: Lane) -> Room {
        let mut state = self.state();
        if state.closed {
            return Room::Closed;
        }
        if state.in_flight < state.limit.size() && !state.is_awaited(lane) {
            state.in_flight += 1;
            drop(state);
            return Room::Now(Permit::new(self));
        }
        state.limit.reached();
        Room::Full
    }

    /// Has a request sent in its turn. `None` if the connection is not in use any more.
    fn queue(self: &Arc<Self>, lane: Lane, job: Job) -> Option<Queued> {
        let mut state = self.state();
        if state.closed {
            return None;
        }
        state.serial += 1;
        let serial = state.serial;
        state.backlog[lane as usize].insert(serial, job);
        // There may be room by now.
        self.send(state);
        Some(Queued { window: Arc::clone(self), lane, serial })
    }

    /// Does some work when it has its turn, on that runtime. `None` if the connection or
    /// its runtime has ended before.
    ///
    /// # Cancel safety
    /// Work that has begun is dropped, and so is its outcome.
    pub(super) fn turn<F>(
        self: &Arc<Self>,
        runtime: &Handle,
        lane: Lane,
        work: impl FnOnce(Permit) -> F + Send + 'static,
    ) -> impl Future<Output = Option<F::Output>>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let (mut sender, receiver) = oneshot::channel();
        let runtime = runtime.clone();
        let job = move |permit| {
            // A future of the caller's may not be polled for long, and would keep the permit.
            runtime.spawn(async move {
                if sender.is_closed() {
                    return;
                }
                let mut work = pin!(work(permit));
                let outcome = future::poll_fn(|context| match work.as_mut().poll(context) {
                    Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                    Poll::Pending => sender.poll_closed(context).map(|()| None),
                });
                if let Some(outcome) = outcome.await {
                    let _ = sender.send(outcome);
                }
            });
        };
        let queued = self.queue(lane, Box::new(job));
        async move {
            let _queued = queued;
            receiver.await.ok()
        }
    }

    /// The number of requests that were answered so far.
    pub(super) fn answered(&self) -> u64 {
        self.state().answered
    }

    /// The least time that an answer has taken lately; zero if there was none yet.
    pub(super) fn latency(&self) -> Duration {
        self.state().limit.base.unwrap_or_default()
    }

    /// The connection is not used any more: what was not sent is not sent.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let backlog = std::mem::take(&mut state.backlog);
        drop(state);
        // Each caller is woken, by a waker that may panic.
        for job in backlog.into_iter().flat_map(BTreeMap::into_values) {
            unharmed(|| drop(job));
        }
    }

    /// A request was not answered in time: the server has enough to do.
    pub(super) fn overdue(&self) {
        self.state().limit.overdue();
    }

    /// A request is answered that was sent then, or is given up.
    fn leave(self: &Arc<Self>, answered: Option<Moment>) {
        let mut state = self.state();
        state.in_flight -= 1;
        if let Some(sent) = answered {
            state.answered += 1;
            let waiting = state.is_awaited(Lane::Questions);
            let in_flight = state.in_flight;
            state.limit.answered(Moment::now(), sent, in_flight, waiting);
        }
        self.send(state);
    }

    /// Sends as much of the backlog as there is room for.
    fn send<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, Traffic>) {
        if state.sending {
            return;
        }
        state.sending = true;
        while state.in_flight < state.limit.size()
            && let Some(job) = state.next()
        {
            state.in_flight += 1;
            drop(state);
            // Hooks of the connection's runtime run in here. A panic must not end the sending for good.
            unharmed(|| job(Permit::new(self)));
            state = self.state();
        }
        state.sending = false;
    }

    fn state(&self) -> MutexGuard<'_, Traffic> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Traffic {
    /// Whether the backlog has requests that come before one of this lane.
    fn is_awaited(&self, lane: Lane) -> bool {
        let releases = !self.backlog[Lane::Releases as usize].is_empty();
        let questions = !self.backlog[Lane::Questions as usize].is_empty();
        releases || lane == Lane::Questions && questions
    }

    fn next(&mut self) -> Option<Job> {
        self.backlog.iter_mut().find_map(BTreeMap::pop_first).map(|(_, job)| job)
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
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
    sent: Moment,
    answered: bool,
}

impl Permit {
    fn new(window: &Arc<Window>) -> Self {
        Self { window: Arc::clone(window), sent: Moment::now(), answered: false }
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

/// A request in the backlog. Dropped, it leaves the backlog.
#[must_use]
struct Queued {
    window: Arc<Window>,
    lane: Lane,
    serial: u64,
}

impl Drop for Queued {
    fn drop(&mut self) {
        let job = self.window.state().backlog[self.lane as usize].remove(&self.serial);
        drop(job);
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
    base_since: Moment,
    /// The base is being measured: since when few are in flight, once they are.
    measuring: Option<Option<Moment>>,
    /// Start of the epoch whose answers are counted.
    epoch: Moment,
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
            base_since: Moment::from_nanos(0),
            measuring: None,
            epoch: Moment::from_nanos(0),
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
    fn answered(&mut self, now: Moment, sent: Moment, in_flight: usize, waiting: bool) {
        let latency = sent.until(now);
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
                if self.base_since.after(BASE_LASTS) <= now {
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

    fn measured(&mut self, now: Moment, latency: Duration) {
        self.base = Some(latency);
        self.base_since = now;
        if self.measuring.take().is_some() {
            self.begin(now);
        }
    }

    fn begin(&mut self, now: Moment) {
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
