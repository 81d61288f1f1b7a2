//! Limits of constants that an attribute names. They panic while the user's crate is compiled.

use std::time::Duration;

const EXPIRE_MIN: Duration = Duration::from_millis(100);
const EXPIRE_MAX: Duration = Duration::from_secs(24 * 3600);

/// `expire = PATH`
///
/// # Panics
/// If it is out of range.
#[track_caller]
pub const fn check_expire(expire: Duration) -> Duration {
    assert!(
        expire.as_nanos() >= EXPIRE_MIN.as_nanos(),
        "`expire` must be at least 100ms so that the lock outlives a Redis round trip"
    );
    assert!(
        expire.as_nanos() <= EXPIRE_MAX.as_nanos(),
        "`expire` must be at most 24h, since a crashed holder blocks the key that long"
    );
    expire
}

/// `max_hold = ..` beside `expire = ..`, one of them a path
///
/// # Panics
/// If `max_hold` is the shorter one.
#[track_caller]
pub const fn check_max_hold(max_hold: Duration, expire: Duration) -> Duration {
    assert!(
        max_hold.as_nanos() >= expire.as_nanos(),
        "`max_hold` must not be shorter than `expire`"
    );
    max_hold
}

/// `prefix = PATH`
///
/// # Panics
/// If it is empty.
#[track_caller]
pub const fn check_prefix(prefix: &'static str) -> &'static str {
    assert!(!prefix.is_empty(), "`prefix` must not be empty");
    prefix
}
