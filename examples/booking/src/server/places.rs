//! How many connections there are places for.

use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// File descriptors that are not for clients: the database, the locks, the log, and some to spare.
const NOT_FOR_CLIENTS: u64 = 256;

/// So many connections are accepted when all other places are taken.
const RESERVE: usize = 64;

/// The places of a server: as many as it was told, and a reserve.
///
/// An operator has to be able to ask how a full service does, so a connection in
/// the reserve may ask that, and nothing else. It has to ask soon and once, so that the reserve
/// cannot be held.
#[derive(Debug, Clone)]
pub(super) struct Places {
    usual: Arc<Semaphore>,
    reserve: Arc<Semaphore>,
}

/// What a connection has for as long as it is open.
#[derive(Debug)]
pub(super) struct Place {
    /// Whether it may only ask how the service does.
    pub(super) reserved: bool,
    _permit: OwnedSemaphorePermit,
}

impl Places {
    /// So many places, or fewer if there are not enough file descriptors.
    pub(super) fn new(wanted: u32) -> Self {
        let usual = Arc::new(Semaphore::new(room(wanted)));
        Self { usual, reserve: Arc::new(Semaphore::new(RESERVE)) }
    }

    /// Waits for a place in the reserve: with it, a connection can be accepted.
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    pub(super) async fn ready(&self) -> OwnedSemaphorePermit {
        match self.reserve.clone().acquire_owned().await {
            Ok(reserve) => reserve,
            // Nothing closes it.
            Err(_) => std::future::pending().await,
        }
    }

    /// The place of a connection that was accepted: a usual one, if there is one.
    pub(super) fn take(&self, reserve: OwnedSemaphorePermit) -> Place {
        match self.usual.clone().try_acquire_owned() {
            Ok(usual) => Place { reserved: false, _permit: usual },
            Err(_) => Place { reserved: true, _permit: reserve },
        }
    }
}

/// How many connections there is room for, once the limit of file descriptors is as high as it may
/// be.
fn room(wanted: u32) -> usize {
    let room = raise_file_limit();
    let places = u64::from(wanted).min(room.saturating_sub(NOT_FOR_CLIENTS)).max(1);
    if places < u64::from(wanted) {
        tracing::warn!("room for {places} connections only: raise the limit of open files");
    }
    usize::try_from(places).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

/// Raises this process's limit of open files as far as it may, and returns it.
pub fn raise_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let _ = setrlimit(Resource::Nofile, raised);
    // No limit at all is told as `None`.
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
