//! Events and spans. A subscriber is code of the user's: if it panics, only its line is lost. So all events
//! and spans of this crate go through here.

use std::{fmt, pin::Pin, time::Duration};

use crate::unharmed::unharmed;

macro_rules! debug_event {
    ($($event:tt)*) => {
        $crate::unharmed::unharmed(|| ::tracing::event!(::tracing::Level::DEBUG, $($event)*))
    };
}

macro_rules! warn_event {
    ($($event:tt)*) => {
        $crate::unharmed::unharmed(|| ::tracing::event!(::tracing::Level::WARN, $($event)*))
    };
}

pub(crate) use {debug_event as debug, warn_event as warn};

/// A span around a wait.
pub(crate) struct Span(Option<tracing::Span>);

impl Span {
    pub(crate) fn new(open: impl FnOnce() -> tracing::Span) -> Self {
        let mut span = None;
        unharmed(|| span = Some(open()));
        Self(span)
    }

    pub(crate) fn enter(&self) -> EnteredSpan<'_> {
        let mut entered = None;
        unharmed(|| entered = self.0.as_ref().map(tracing::Span::enter));
        if let (None, Some(span)) = (&entered, &self.0) {
            // A layer has panicked after another one had entered it, which would take it for the parent of
            // all spans to come on this thread.
            unharmed(|| {
                span.with_subscriber(|(id, subscriber)| subscriber.exit(id));
            });
        }
        EnteredSpan(entered)
    }

    /// Records how the wait has ended.
    pub(crate) fn record(&self, waited: Duration, outcome: &str) {
        unharmed(|| {
            if let Some(span) = &self.0 {
                span.record("waited", tracing::field::debug(waited)).record("outcome", outcome);
            }
        });
    }

    /// Polls a future inside of the span. It is pinned by the caller: a future that is moved takes its
    /// room twice.
    pub(crate) async fn around<F: Future>(&self, mut future: Pin<&mut F>) -> F::Output {
        std::future::poll_fn(|context| {
            let _entered = self.enter();
            future.as_mut().poll(context)
        })
        .await
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        unharmed(|| drop(self.0.take()));
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Span").field(&self.0).finish()
    }
}

#[must_use]
pub(crate) struct EnteredSpan<'a>(Option<tracing::span::Entered<'a>>);

impl Drop for EnteredSpan<'_> {
    fn drop(&mut self) {
        unharmed(|| drop(self.0.take()));
    }
}
