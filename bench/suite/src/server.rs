//! What the server says of itself.

use std::{collections::HashMap, time::Duration};

use test_support::RedisServer;

/// Commands that a script cannot call: their numbers are those of the clients.
const NEVER_IN_SCRIPTS: [&str; 12] = [
    "auth",
    "client|setinfo",
    "eval",
    "evalsha",
    "fcall",
    "hello",
    "ping",
    "psubscribe",
    "script|load",
    "select",
    "subscribe",
    "unsubscribe",
];

/// The server's counters at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    calls: HashMap<String, u64>,
    cpu: Duration,
}

/// What has been counted between two of those moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    /// Commands that clients sent.
    pub(crate) sent: u64,
    /// Commands that the server ran, those that scripts called included.
    pub(crate) ran: u64,
    pub(crate) cpu: Duration,
}

impl Counters {
    pub(crate) fn read(server: &RedisServer) -> Self {
        let calls = server.cli(&["INFO", "commandstats"]);
        let calls = calls.lines().filter_map(calls_of).collect();
        let cpu = server.cli(&["INFO", "cpu"]);
        let seconds = |name: &str| {
            let line = cpu.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|text| text.trim().parse().ok()).unwrap_or(0.0)
        };
        let cpu = Duration::from_secs_f64(seconds("used_cpu_user") + seconds("used_cpu_sys"));
        Self { calls, cpu }
    }

    /// `sends_set`: whether the clients send `SET` and the scripts do not call it.
    pub(crate) fn since(&self, earlier: &Self, sends_set: bool) -> Spent {
        let mut spent = Spent { sent: 0, ran: 0, cpu: self.cpu.saturating_sub(earlier.cpu) };
        for (command, &calls) in &self.calls {
            // The command itself.
            if command == "info" {
                continue;
            }
            let calls = calls - earlier.calls.get(command).copied().unwrap_or_default();
            spent.ran += calls;
            if NEVER_IN_SCRIPTS.contains(&&**command) || (sends_set && command == "set") {
                spent.sent += calls;
            }
        }
        spent
    }
}

/// Of a line such as `cmdstat_client|setinfo:calls=12,usec=345,...`.
fn calls_of(line: &str) -> Option<(String, u64)> {
    let (command, numbers) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
    Some((command.to_owned(), numbers.split(',').next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_scripts_call_is_not_sent() {
        let counters = |text: &str| Counters {
            calls: text.lines().filter_map(calls_of).collect(),
            cpu: Duration::ZERO,
        };
        let earlier = counters("# Commandstats\ncmdstat_set:calls=2,usec=3\n");
        let later = counters(
            "cmdstat_set:calls=12,usec=3\ncmdstat_evalsha:calls=5,usec=9\ncmdstat_info:calls=1,usec=1",
        );
        let spent = later.since(&earlier, false);
        assert_eq!((spent.sent, spent.ran), (5, 15));
        let spent = later.since(&earlier, true);
        assert_eq!((spent.sent, spent.ran), (15, 15));
    }
}
