//! Being told to end.

use std::io;

use crate::Error;

/// Waits until somebody ends this process, who must not be kept waiting: [`Error::Interrupted`] or
/// [`Error::Terminated`].
pub(crate) async fn asked_to_end() -> Error {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => Error::Interrupted,
        Ok(()) = terminated() => Error::Terminated,
    }
}

/// SIGTERM: how services, containers and `kill` do it.
#[cfg(unix)]
async fn terminated() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    signal(SignalKind::terminate())?.recv().await;
    Ok(())
}

#[cfg(not(unix))]
async fn terminated() -> io::Result<()> {
    std::future::pending().await
}
