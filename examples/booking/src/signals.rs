//! Being told to end.

use std::io;

/// Waits for SIGTERM, as services, containers and `kill` send it, or Ctrl-C.
pub async fn asked_to_end() {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        Ok(()) = terminated() => {}
    }
}

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
