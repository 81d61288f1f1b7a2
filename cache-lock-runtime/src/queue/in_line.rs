//! The wait for a lock, as a future: it drives the question that its waiter asks by itself, and keeps
//! the waiter's time.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{Outcome, Queues, Refusal, Seat, Waiter};
use crate::{
    clock::Moment,
    driver::{Sleep, unharmed},
};

/// A wait for a lock.
#[must_use]
pub(crate) struct InLine<'a> {
    queues: &'a Arc<Queues>,
    seat: Arc<Seat>,
    /// Until the outcome is known.
    waiter: Option<Arc<Waiter>>,
    sleep: Option<(Sleep<'a>, Moment)>,
}

impl<'a> InLine<'a> {
    pub(super) fn new(queues: &'a Arc<Queues>, seat: Arc<Seat>, waiter: Arc<Waiter>) -> Self {
        Self { queues, seat, waiter: Some(waiter), sleep: None }
    }
}

impl Future for InLine<'_> {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let Self { queues, seat, waiter, sleep } = self.get_mut();
        let Some(waiting) = waiter.as_ref() else { return Poll::Ready(Outcome::Missed) };
        let asks = match waiting.poll_question(context) {
            Some(Poll::Ready((token, answer))) => {
                // It is polled, and so need not be woken by what comes of the answer.
                drop(waiting.take_waker());
                queues.at(seat, |place, scene, effects| {
                    place.answered(scene, &token, answer, effects);
                    place.is_polled(waiting);
                });
                false
            }
            Some(Poll::Pending) => true,
            None => false,
        };
        let outcome = match waiting.poll_outcome(context) {
            Poll::Ready(outcome) => outcome,
            // Whoever takes its question over wakes it, but not before it has left its waker.
            Poll::Pending if asks && waiting.asks_by_itself() => return Poll::Pending,
            Poll::Pending => match poll_patience(queues, seat, waiting, sleep, context) {
                // It may have been handed the lock since it was looked at last. It is in no line any
                // more, so nothing comes after this look.
                Poll::Ready(refusal) => match waiting.poll_outcome(context) {
                    Poll::Ready(outcome) => outcome,
                    Poll::Pending => Outcome::Refused(refusal),
                },
                Poll::Pending => return Poll::Pending,
            },
        };
        *waiter = None;
        Poll::Ready(outcome)
    }
}

/// Ready when the waiter's time is over.
fn poll_patience<'a>(
    queues: &'a Arc<Queues>,
    seat: &Arc<Seat>,
    waiter: &Arc<Waiter>,
    sleep: &mut Option<(Sleep<'a>, Moment)>,
    context: &mut Context<'_>,
) -> Poll<Refusal> {
    loop {
        let now = Moment::now();
        let due = if now < waiter.patience { waiter.patience } else { waiter.end };
        if now >= waiter.patience {
            let given_up =
                queues.at(seat, |place, scene, effects| place.give_up(scene, waiter, effects));
            if let Some(refusal) = given_up {
                return Poll::Ready(refusal);
            }
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

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            // Dropped before the lock of the place is taken, and whatever its drop does: that is code of
            // the caller's.
            unharmed(|| drop(waiter.take_waker()));
            self.queues
                .at(&self.seat, |place, scene, effects| place.leave(scene, &waiter, effects));
        }
    }
}
