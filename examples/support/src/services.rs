//! The Redis server behind a run, and what is said of a server that cannot be used.

use std::time::Duration;

use cache_lock::{LockError, LockManager};

use crate::url::ServerUrl;

/// A server that has not answered by now is taken for unreachable.
pub(crate) const PATIENCE: Duration = Duration::from_secs(4);

/// A server that was asked for and cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(String);

/// Locks on the Redis server at `url`.
///
/// # Errors
/// [`Unusable`] within five seconds.
pub async fn locks_on(url: &ServerUrl) -> Result<LockManager, Unusable> {
    let why = match tokio::time::timeout(PATIENCE, LockManager::connect(url.secret())).await {
        Ok(Ok(locks)) => return Ok(locks),
        // About a URL that cannot be read it names the URL itself.
        Ok(Err(LockError::Connect { server, source, .. }))
            if source.to_string().contains(&*server) =>
        {
            return Err(Unusable(format!("Redis cannot be used: {source}")));
        }
        // It names the server too; here it is named as it was written.
        Ok(Err(LockError::Connect { source, .. })) => source.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => no_answer(),
    };
    Err(unusable("Redis", url, &why))
}

pub(crate) fn no_answer() -> String {
    format!("no answer within {PATIENCE:?}")
}

/// The error about a server that was asked for.
#[must_use]
pub fn unusable(what: &str, url: &ServerUrl, reason: &str) -> Unusable {
    Unusable(format!("{what} at {url} cannot be used: {reason}"))
}
