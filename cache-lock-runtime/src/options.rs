//! How one lock is taken and held.

use std::time::Duration;

use crate::error::LockError;

/// The shortest lease. A shorter one would not outlive a round trip to a busy server.
pub(crate) const MIN_EXPIRE: Duration = Duration::from_millis(100);
/// The longest lease. A longer one would have to be removed by hand after a crash.
pub(crate) const MAX_EXPIRE: Duration = Duration::from_secs(24 * 60 * 60);

/// How one lock is waited for, held, lost and released.
///
/// Times that are left out are the manager's (2 s and 10 s, unless it was built with others), and
/// so is what becomes of the release.
///
/// ```
/// use std::time::Duration;
/// use cache_lock::{LockOptions, OnLost};
///
/// const PATIENT: LockOptions = LockOptions::new()
///     .timeout(Duration::from_secs(30))
///     .expire(Duration::from_secs(5))
///     .on_lost(OnLost::Finish);
/// ```
///
/// The values are checked when a lock is acquired
/// ([`LockError::InvalidOption`](crate::LockError::InvalidOption)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct LockOptions {
    timeout: Option<Duration>,
    expire: Option<Duration>,
    renew: bool,
    max_hold: Option<Duration>,
    on_lost: OnLost,
    background_release: Option<bool>,
}

impl LockOptions {
    /// The manager's times and way of release, with renewal, and [`OnLost::Cancel`].
    pub const fn new() -> Self {
        Self {
            timeout: None,
            expire: None,
            renew: true,
            max_hold: None,
            on_lost: OnLost::Cancel,
            background_release: None,
        }
    }

    /// The longest wait for another holder. Zero tries once.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Lease length. A crashed holder blocks the key for this long. Range: 100 ms to 24 h.
    pub const fn expire(mut self, expire: Duration) -> Self {
        self.expire = Some(expire);
        self
    }

    /// Whether the lease is extended in the background for as long as it is held. The default is
    /// `true`.
    pub const fn renew(mut self, renew: bool) -> Self {
        self.renew = renew;
        self
    }

    /// The longest time that renewal may hold the lease, from the acquisition on; then it is
    /// lost ([`LostReason::MaxHold`](crate::LostReason::MaxHold)). At least `expire`. Without
    /// it a body that hangs holds the lock for ever, and a warning is logged every 10 × `expire`.
    pub const fn max_hold(mut self, max_hold: Duration) -> Self {
        self.max_hold = Some(max_hold);
        self
    }

    /// What becomes of a body whose lease is lost: one that runs under the attribute or
    /// [`LockManager::run`](crate::LockManager::run). If you hold a guard, check `is_lost`.
    pub const fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.on_lost = on_lost;
        self
    }

    /// Whether the attribute and [`LockManager::run`](crate::LockManager::run) return without
    /// waiting for the answer to the release, as
    /// [`LockManagerBuilder::background_release`](crate::LockManagerBuilder::background_release)
    /// sets it for all locks of a manager. A failure is logged then, and tried again. If you hold a guard, drop
    /// it or release it.
    pub const fn background_release(mut self, background_release: bool) -> Self {
        self.background_release = Some(background_release);
        self
    }

    /// Fills in the manager's settings, and checks all.
    pub(crate) fn resolve(&self, defaults: &Defaults) -> Result<Settings, LockError> {
        let settings = Settings {
            timeout: self.timeout.unwrap_or(defaults.timeout),
            expire: self.expire.unwrap_or(defaults.expire),
            renew: self.renew,
            max_hold: self.max_hold,
            on_lost: self.on_lost,
            background_release: self.background_release.unwrap_or(defaults.background_release),
        };
        check_lease("expire", settings.expire)?;
        if let Some(max_hold) = settings.max_hold {
            let limit = if !settings.renew {
                "it bounds renewal, so it needs `renew = true`"
            } else if max_hold < settings.expire {
                "it must be at least `expire`"
            } else {
                return Ok(settings);
            };
            return Err(LockError::InvalidOption { option: "max_hold", value: max_hold, limit });
        }
        Ok(settings)
    }
}

impl Default for LockOptions {
    fn default() -> Self {
        Self::new()
    }
}

pub(crate) fn check_lease(option: &'static str, value: Duration) -> Result<(), LockError> {
    let limit = if value < MIN_EXPIRE {
        "it must be at least 100ms, so that the lock outlives a round trip to the server"
    } else if value > MAX_EXPIRE {
        "it must be at most 24h, so that a crashed holder's lock does not stay for days"
    } else {
        return Ok(());
    };
    Err(LockError::InvalidOption { option, value, limit })
}

/// What becomes of a body whose lease is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnLost {
    /// The body's future is dropped where it stands, and the caller gets
    /// [`LockError::Lost`](crate::LockError::Lost).
    #[default]
    Cancel,
    /// The body runs to its end, and its value is returned. It can ask
    /// [`LockGuard::is_lost`](crate::LockGuard::is_lost).
    Finish,
}

/// What a manager says where the options do not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) timeout: Duration,
    pub(crate) expire: Duration,
    pub(crate) background_release: bool,
}

/// Options that are complete and checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) timeout: Duration,
    pub(crate) expire: Duration,
    pub(crate) renew: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) on_lost: OnLost,
    pub(crate) background_release: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: Defaults = Defaults {
        timeout: Duration::from_secs(2),
        expire: Duration::from_secs(10),
        background_release: false,
    };

    fn refusal(options: LockOptions) -> Option<String> {
        options.resolve(&DEFAULTS).err().map(|error| error.to_string())
    }

    #[test]
    fn limits() {
        let of = |ms| LockOptions::new().expire(Duration::from_millis(ms));
        assert_eq!(refusal(of(100)), None);
        assert_eq!(refusal(of(24 * 3_600_000)), None);
        let short = refusal(of(99)).expect("too short");
        assert!(short.starts_with("`expire` is 99ms; it must be at least 100ms"), "{short}");
        assert!(refusal(of(0)).is_some());
        assert!(refusal(of(24 * 3_600_000 + 1)).expect("too long").contains("at most 24h"));
        assert!(refusal(LockOptions::new().expire(Duration::MAX)).is_some());
        assert_eq!(refusal(LockOptions::new().timeout(Duration::MAX)), None);
    }

    #[test]
    fn max_hold_fits_the_lease() {
        let of = |secs| of_renewed(secs, true);
        fn of_renewed(secs: u64, renew: bool) -> LockOptions {
            LockOptions::new().max_hold(Duration::from_secs(secs)).renew(renew)
        }
        assert_eq!(refusal(of(10)), None);
        assert!(refusal(of(9)).expect("too short").contains("at least `expire`"));
        assert!(refusal(of_renewed(60, false)).expect("no renewal").contains("renew"));
    }
}
