use std::thread::sleep;
use std::time::{Duration, Instant};

/// Far more than anything here takes on a busy machine; it only turns a hang into a failure.
pub(crate) const HANG_GUARD: Duration = Duration::from_secs(60);

/// Polls `condition` until it holds.
///
/// It blocks the thread: in an async test call it through `spawn_blocking`, or on a runtime with
/// more than one worker.
///
/// # Panics
/// With `what` when the condition does not hold within a minute.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < HANG_GUARD, "waited {HANG_GUARD:?} in vain until {what}");
        sleep(Duration::from_millis(5));
    }
}
