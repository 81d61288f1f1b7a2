//! Timers of the lease clock.

use std::{
    collections::BTreeMap,
    panic::{self, AssertUnwindSafe},
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
    thread,
    time::Duration,
};

use tokio::sync::Notify;

use crate::{clock::Instant, mutex::Mutex};

/// Where an entry stands in an [`TimerQueue`].
pub(crate) type TimerId = (Instant, u64);

/// The longest time between two looks at the clock while there are entries. The timer of the
/// runtime stands still while the machine is suspended, and [`Instant`] does not.
const LOOK: Duration = Duration::from_secs(1);

/// The timer of the runtime counts whole milliseconds, and rounds up. What is due sooner than this is
/// waited for by a thread as well.
const FINE: Duration = Duration::from_millis(1);
/// What is due sooner than this is waited for by looking again: a thread takes as long to wake.
const NOW: Duration = Duration::from_micros(50);

/// TimerEntries in the order of their times, with one consumer that sleeps until the next is due.
///
/// Adding an entry wakes the consumer only if it would sleep too long, and removing one never
/// does: the entries of short critical sections come and go without waking it.
#[derive(Debug)]
pub(crate) struct TimerQueue<T> {
    entries: Mutex<TimerEntries<T>>,
    earlier: Notify,
    /// TimerEntries are waited for to the part of a millisecond.
    precise: AtomicBool,
}

#[derive(Debug)]
struct TimerEntries<T> {
    by_time: BTreeMap<TimerId, T>,
    /// Tells entries of the same moment apart.
    serial: u64,
    /// Until when the consumer sleeps; `None` while it is awake.
    asleep_until: Option<Instant>,
}

impl<T> TimerQueue<T> {
    pub(crate) fn new() -> Self {
        let entries = TimerEntries { by_time: BTreeMap::new(), serial: 0, asleep_until: None };
        let (earlier, precise) = (Notify::new(), AtomicBool::new(false));
        Self { entries: Mutex::new(entries), earlier, precise }
    }

    /// One whose entries are taken up to a millisecond sooner than with the runtime's timer alone.
    pub(crate) fn precise() -> Self {
        Self { precise: AtomicBool::new(true), ..Self::new() }
    }

    pub(crate) fn insert(&self, due: Instant, entry: T) -> TimerId {
        let mut entries = self.entries.lock();
        entries.serial += 1;
        let slot = (due, entries.serial);
        entries.by_time.insert(slot, entry);
        if entries.asleep_until.is_some_and(|until| due < until) {
            entries.asleep_until = Some(due);
            drop(entries);
            self.earlier.notify_one();
        }
        slot
    }

    pub(crate) fn remove(&self, slot: TimerId) -> Option<T> {
        self.entries.lock().by_time.remove(&slot)
    }

    /// Changes an entry that is still there.
    pub(crate) fn update(&self, slot: TimerId, change: impl FnOnce(&mut T)) {
        if let Some(entry) = self.entries.lock().by_time.get_mut(&slot) {
            change(entry);
        }
    }

    pub(crate) fn take_all(&self) -> Vec<T> {
        std::mem::take(&mut self.entries.lock().by_time).into_values().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.lock().by_time.len()
    }

    /// Takes the entries that are due, and waits for the first of them. For one consumer, which
    /// runs on the driver's runtime.
    ///
    /// # Cancel safety
    /// Nothing is taken before the call returns.
    pub(crate) async fn due(&self) -> Vec<T> {
        loop {
            let now = Instant::now();
            let wait = {
                let mut entries = self.entries.lock();
                let next = entries.by_time.keys().next().map_or(Instant::FAR, |slot| slot.0);
                if next <= now {
                    entries.asleep_until = None;
                    let mut due = Vec::new();
                    while let Some(first) = entries.by_time.first_entry()
                        && first.key().0 <= now
                    {
                        due.push(first.remove());
                    }
                    return due;
                }
                entries.asleep_until = Some(next);
                (next != Instant::FAR).then(|| (next - now).min(LOOK))
            };
            let earlier = self.earlier.notified();
            match wait {
                // Each outcome leads to another look.
                Some(wait) if wait < FINE && self.precise.load(Ordering::Relaxed) => {
                    if wait < NOW {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    // It panics if the system has no thread for it, which must not end the driver.
                    let sleep = || tokio::task::spawn_blocking(move || thread::sleep(wait));
                    let Ok(slept) = panic::catch_unwind(AssertUnwindSafe(sleep)) else {
                        self.precise.store(false, Ordering::Relaxed);
                        continue;
                    };
                    let (mut slept, mut earlier) = (pin!(slept), pin!(earlier));
                    let either =
                        std::future::poll_fn(|context| match earlier.as_mut().poll(context) {
                            Poll::Pending => slept.as_mut().poll(context).map(drop),
                            ready => ready,
                        });
                    drop(tokio::time::timeout(wait, either).await);
                }
                Some(wait) => drop(tokio::time::timeout(wait, earlier).await),
                None => earlier.await,
            }
        }
    }
}
