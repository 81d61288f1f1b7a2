//! What a manager has done, and what it has in hand.

/// What a manager has done; see [`LockManager::stats`](super::LockManager::stats). Each number only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockStats {
    /// How many locks were acquired.
    pub acquired: u64,
    /// How many callers gave up while another holder had the lock, with those that did not wait.
    pub contended: u64,
    /// How many callers got no lock since the server could not be asked.
    pub failed: u64,
    /// How many leases had ended before their bodies did, or before they were released.
    pub lost: u64,
    /// How often a lock went from one caller of this manager to the next without a word to the
    /// server.
    pub handed_over: u64,
}

/// See [`LockManager::in_hand`](super::LockManager::in_hand).
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InHand {
    /// Keys that are held or waited for, or whose release is on its way.
    pub keys: usize,
    /// Leases that are held.
    pub leases: usize,
    /// Single flights, with those whose values are kept.
    #[cfg(feature = "single-flight")]
    pub flights: usize,
    /// Tasks of the manager's thread, and acquisitions and releases that are under way.
    pub tasks: usize,
    /// Timers that run.
    pub timers: usize,
    /// Connections that are open, or being opened.
    pub connections: usize,
}
