//! Being told to end.

use std::io;

/// How this process was told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Signal {
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupt,
    /// SIGTERM.
    #[error("terminated")]
    Terminate,
}

impl Signal {
    /// What shells report for a command that the signal has ended.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// Waits until somebody ends this process, who must not be kept waiting.
pub async fn asked_to_end() -> Signal {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => Signal::Interrupt,
        Ok(()) = terminated() => Signal::Terminate,
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
