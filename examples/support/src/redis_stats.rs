//! The Redis server's own count of what it was asked.

use std::time::Duration;

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;

use crate::url::ServerUrl;

/// Commands, and for how many each of them counts.
pub type Counted = &'static [(&'static str, u64)];

/// Calls of scripts. The commands inside of scripts are counted by the server under their names, as those
/// of clients are, so plain commands cannot be told apart.
pub const SCRIPTS: Counted = &[("eval", 1), ("evalsha", 1)];

/// What clients of `cache-lock` send besides opening connections, and how many commands it stands for.
/// (Of an opening one EVAL counts, which looks what scripts may do.)
/// Locks are taken, passed on, extended and released by scripts. A process that has to wait listens
/// once, by SUBSCRIBE, and tries with one PUBLISH whether it is heard. That is not looked up under its
/// own name: the commands inside scripts, PUBLISH among them, are counted by the server too, and are
/// not the client's.
pub const SENT_FOR_LOCKS: Counted = &[("eval", 1), ("evalsha", 1), ("subscribe", 2)];

/// Reads the server's statistics. Those of other users of the server are among them, so the
/// numbers are exact on a private one only.
#[derive(Debug, Clone)]
pub struct RedisStats {
    connection: MultiplexedConnection,
    counted: Counted,
}

impl RedisStats {
    /// `None` if the server lets this user have no statistics: a run does without.
    pub async fn connect(url: &ServerUrl, counted: Counted) -> Option<Self> {
        let client = redis::Client::open(url.secret()).ok()?;
        // INFO is in no hurry, and shares the server with the run.
        let config =
            AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(5)));
        let connection = client.get_multiplexed_async_connection_with_config(&config).await.ok()?;
        let stats = Self { connection, counted };
        stats.count().await.map(|_| stats)
    }

    /// The server's version.
    pub async fn version(&self) -> Option<String> {
        let info = self.info("server").await?;
        info.lines().find_map(|line| line.strip_prefix("redis_version:")).map(str::to_owned)
    }

    /// How many of the counted commands the server has carried out so far.
    pub async fn count(&self) -> Option<u64> {
        let called = |line: &str| called(line, self.counted);
        Some(self.info("commandstats").await?.lines().filter_map(called).sum())
    }

    async fn info(&self, section: &str) -> Option<String> {
        let mut connection = self.connection.clone();
        redis::cmd("INFO").arg(section).query_async(&mut connection).await.ok()
    }
}

/// For how much a line such as `cmdstat_evalsha:calls=12,usec=345,...` counts.
fn called(line: &str, counted: Counted) -> Option<u64> {
    let (command, numbers) = line.strip_prefix("cmdstat_")?.split_once(':')?;
    let (_, each) = counted.iter().find(|(name, _)| *name == command)?;
    let calls = numbers.split(',').find_map(|number| number.strip_prefix("calls="))?;
    Some(each * calls.trim().parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::{SENT_FOR_LOCKS, called};

    #[test]
    fn commands_inside_scripts_do_not_count() {
        let sent = |line| called(line, SENT_FOR_LOCKS);
        assert_eq!(sent("cmdstat_evalsha:calls=12,usec=345,usec_per_call=28.75"), Some(12));
        assert_eq!(sent("cmdstat_eval:calls=1,usec=3"), Some(1));
        assert_eq!(sent("cmdstat_subscribe:calls=4,usec=3"), Some(8));
        assert_eq!(sent("cmdstat_publish:calls=12,usec=34"), None);
        assert_eq!(sent("cmdstat_set:calls=12,usec=34"), None);
        assert_eq!(sent("# Commandstats"), None);
    }
}
