//! The wait for a lock, as a future: it drives the request that its waiter sends directly, and keeps the
//! waiter's time.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{Acquired, KeyEntry, KeyQueues};
use crate::{
    clock::Instant,
    driver::Sleep,
    protocol::waiter::{Refusal, WaitOutcome, Waiter},
    unharmed::unharmed,
};

/// What comes of a wait.
#[derive(Debug)]
pub(crate) enum AcquireOutcome {
    Acquired(Acquired),
    Refused(Refusal),
    /// The lock was handed to the caller, and passed on, since the caller was not polled.
    Missed,
}

/// A wait for a lock.
#[must_use]
pub(crate) struct Acquire<'a> {
    queues: &'a Arc<KeyQueues>,
    entry: Arc<KeyEntry>,
    /// Until the outcome is known.
    waiter: Option<Arc<Waiter>>,
    sleep: Option<(Sleep<'a>, Instant)>,
}

impl<'a> Acquire<'a> {
    pub(super) fn new(
        queues: &'a Arc<KeyQueues>,
        entry: Arc<KeyEntry>,
        waiter: Arc<Waiter>,
    ) -> Self {
        Self { queues, entry, waiter: Some(waiter), sleep: None }
    }

    /// The lock, if the caller has it without waiting.
    pub(crate) fn at_once(&mut self) -> Option<Acquired> {
        let lease = self.waiter.as_ref()?.take_handed()?;
        self.waiter = None;
        Some(Acquired { lease, entry: Arc::clone(&self.entry) })
    }

    fn outcome(&self, outcome: WaitOutcome) -> AcquireOutcome {
        match outcome {
            WaitOutcome::Handed(lease) => {
                AcquireOutcome::Acquired(Acquired { lease, entry: Arc::clone(&self.entry) })
            }
            WaitOutcome::Refused(refusal) => AcquireOutcome::Refused(refusal),
            WaitOutcome::Missed => AcquireOutcome::Missed,
        }
    }
}

impl Future for Acquire<'_> {
    type Output = AcquireOutcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<AcquireOutcome> {
        let this = self.get_mut();
        let Self { queues, entry, waiter, sleep } = &mut *this;
        let Some(waiting) = waiter.as_ref() else { return Poll::Ready(AcquireOutcome::Missed) };
        let asks = match waiting.poll_request(context) {
            Some(Poll::Ready((token, answer))) => {
                // It is polled, and so need not be woken by what comes of the answer.
                drop(waiting.take_waker());
                queues.at(entry, |machine| {
                    machine.answered(&token, answer);
                    machine.polled(waiting);
                });
                false
            }
            Some(Poll::Pending) => true,
            None => false,
        };
        let outcome = match waiting.poll_outcome(context) {
            Poll::Ready(outcome) => outcome,
            // The task that takes its request over wakes it, but not before it has left its waker.
            Poll::Pending if asks && waiting.asks_directly() => return Poll::Pending,
            Poll::Pending => match poll_patience(queues, entry, waiting, sleep, context) {
                // It may have been handed the lock since the last look. It is in no queue any more, so
                // nothing comes after this look.
                Poll::Ready(refusal) => match waiting.poll_outcome(context) {
                    Poll::Ready(outcome) => outcome,
                    Poll::Pending => WaitOutcome::Refused(refusal),
                },
                Poll::Pending => return Poll::Pending,
            },
        };
        *waiter = None;
        Poll::Ready(this.outcome(outcome))
    }
}

/// Ready when the waiter's time is over.
fn poll_patience<'a>(
    queues: &'a Arc<KeyQueues>,
    entry: &Arc<KeyEntry>,
    waiter: &Arc<Waiter>,
    sleep: &mut Option<(Sleep<'a>, Instant)>,
    context: &mut Context<'_>,
) -> Poll<Refusal> {
    loop {
        let now = Instant::now();
        let due = if now < waiter.patience { waiter.patience } else { waiter.end };
        if now >= waiter.patience
            && let Some(refusal) = queues.at(entry, |machine| machine.give_up(waiter))
        {
            return Poll::Ready(refusal);
        }
        let (timer, _) = match sleep {
            Some(sleep) if sleep.1 == due => sleep,
            _ => sleep.insert((queues.driver.sleep_until(due), due)),
        };
        if Pin::new(timer).poll(context).is_pending() {
            return Poll::Pending;
        }
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            // Before the lock of the key is taken: the drop of a waker is the caller's code.
            unharmed(|| drop(waiter.take_waker()));
            self.queues.at(&self.entry, |machine| machine.leave(&waiter));
        }
    }
}
