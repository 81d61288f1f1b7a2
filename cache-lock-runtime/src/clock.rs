//! The clock that leases are measured by.
//!
//! A lease goes on running out on the server while this machine is suspended, so the clock must
//! count that time: on Linux `CLOCK_BOOTTIME` does, and the clock behind [`std::time::Instant`]
//! does not. It is never wall time, which jumps, and never tokio's, which users' tests pause.

use std::{
    ops::{Add, Sub},
    time::Duration,
};

/// A point in time, in nanoseconds since some start that is fixed for the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(u64);

impl Instant {
    /// Later than every deadline.
    pub(crate) const FAR: Self = Self(u64::MAX);

    pub(crate) fn now() -> Self {
        Self(nanoseconds())
    }

    pub(crate) fn elapsed(self) -> Duration {
        Self::now() - self
    }

    pub(crate) fn as_nanos(self) -> u64 {
        self.0
    }

    pub(crate) const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }
}

/// Saturates, so that a timeout of `Duration::MAX` never ends.
impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(in_nanoseconds(wait)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, wait: Duration) -> Self {
        Self(self.0.saturating_sub(in_nanoseconds(wait)))
    }
}

/// The time since an earlier instant; zero if that one is later.
impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn in_nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(target_os = "linux")]
fn nanoseconds() -> u64 {
    use rustix::time::{ClockId, clock_gettime};

    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let fraction = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(fraction)
}

#[cfg(not(target_os = "linux"))]
fn nanoseconds() -> u64 {
    use std::{sync::OnceLock, time};

    static START: OnceLock<time::Instant> = OnceLock::new();
    let elapsed = START.get_or_init(time::Instant::now).elapsed();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        assert_eq!(now + Duration::MAX, Instant::FAR);
        assert_eq!(now - Duration::MAX, Instant::from_nanos(0));
        assert_eq!(now - (now + second), Duration::ZERO);
        assert_eq!(now + second - now, second);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn counts_from_boot_like_the_kernel_does() {
        // The first field of /proc/uptime is CLOCK_BOOTTIME, in hundredths of a second.
        let uptime = || {
            let text = std::fs::read_to_string("/proc/uptime").expect("/proc is mounted");
            let seconds: f64 = text.split(' ').next().and_then(|s| s.parse().ok()).expect("number");
            Duration::from_secs_f64(seconds)
        };
        let before = uptime();
        let now = Duration::from_nanos(Instant::now().as_nanos());
        let after = uptime() + Duration::from_millis(10);
        assert!(before <= now && now <= after, "{before:?} <= {now:?} <= {after:?}");
    }

    /// A machine that was never suspended cannot tell the clocks apart. In a time namespace with
    /// an offset, as after a suspend of a day, it can.
    #[cfg(target_os = "linux")]
    #[test]
    fn counts_the_time_of_a_suspend() {
        use std::process::{Command, Stdio};

        let suspended = || {
            let mut command = Command::new("unshare");
            let options = ["--user", "--map-root-user", "--time", "--boottime", "86400"];
            command.args(options).stdin(Stdio::null());
            command
        };
        let permitted = suspended().arg("true").output().is_ok_and(|ran| ran.status.success());
        if !permitted {
            #[expect(clippy::print_stderr, reason = "what a test leaves out must be seen")]
            let () = eprintln!("left out: no time namespace may be made here");
            return;
        }
        let this_test = "clock::tests::counts_from_boot_like_the_kernel_does";
        let tests = std::env::current_exe().expect("a test has a file");
        let ran = suspended().arg(tests).args(["--exact", this_test]).output();
        let ran = ran.expect("unshare runs");
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    }
}
