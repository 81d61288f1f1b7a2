//! Clocks that all processes of a machine share.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`. Every process reads the same clock, so times of two of them
/// can be subtracted, which those of `std::time::Instant` cannot.
pub(crate) fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// What all threads of this process have computed so far.
pub(crate) fn cpu() -> Duration {
    Duration::from_nanos(nanoseconds(ClockId::ProcessCPUTime))
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let whole = u64::try_from(time.tv_sec).unwrap_or_default() * 1_000_000_000;
    whole + u64::try_from(time.tv_nsec).unwrap_or_default()
}
