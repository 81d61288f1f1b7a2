//! Ends of an opening other than its outcome.

use std::{
    panic::{self, AssertUnwindSafe},
    pin::pin,
    task::Poll,
};

use tokio::sync::Notify;

/// The output of `future`, or `None` if it panics. A runtime without I/O is found by trying: tokio tells
/// of it by a panic alone, which the hook of the program reports once for such a runtime.
pub(super) async fn unless_it_panics<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        let polled = panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        polled.map_or(Poll::Ready(None), |polled| polled.map(Some))
    })
    .await
}

/// The output of `future`, or `None` if its connection is not wanted any more.
pub(super) async fn unless_ended<F: Future>(end: &Notify, future: F) -> Option<F::Output> {
    let (mut end, mut future) = (pin!(end.notified()), pin!(future));
    std::future::poll_fn(|context| match end.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => future.as_mut().poll(context).map(Some),
    })
    .await
}
