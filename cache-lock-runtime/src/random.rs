//! Random numbers that spread pauses: not for secrets.

use std::time::Duration;

/// xorshift (G. Marsaglia, 2003).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        // The state of the generator must not be zero.
        Self(seed | 1)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A time below `bound`, drawn uniformly.
    pub(crate) fn below(&mut self, bound: Duration) -> Duration {
        let spread = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX).max(1);
        Duration::from_nanos(self.number() % spread)
    }
}
