//! The Redis server's own count of what it was asked.

use std::time::Duration;

use example_support::ServerUrl;
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;

/// What clients of `cache-lock` send besides opening connections, and how many commands it stands for.
/// Locks are taken, passed on, extended and released by scripts. A process that has to wait listens
/// once, by SUBSCRIBE, and tries with one PUBLISH whether it is heard. That is not looked up under its
/// own name: the commands inside scripts, PUBLISH among them, are counted by the server too, and are
/// not the client's.
const SENT: [(&str, u64); 3] = [("eval", 1), ("evalsha", 1), ("subscribe", 2)];

/// Reads the server's statistics. Those of other users of the server are among them, so the
/// numbers are exact on a private one only.
#[derive(Debug, Clone)]
pub(crate) struct RedisStats {
    connection: MultiplexedConnection,
}

impl RedisStats {
    /// `None` if the server lets this user have no statistics: a run does without.
    pub(crate) async fn connect(url: &ServerUrl) -> Option<Self> {
        let client = redis::Client::open(url.secret()).ok()?;
        // INFO is in no hurry, and shares the server with the run.
        let config =
            AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(5)));
        let connection = client.get_multiplexed_async_connection_with_config(&config).await.ok()?;
        let stats = Self { connection };
        stats.commands().await.map(|_| stats)
    }

    /// The server's version.
    pub(crate) async fn version(&self) -> Option<String> {
        let info = self.info("server").await?;
        info.lines().find_map(|line| line.strip_prefix("redis_version:")).map(str::to_owned)
    }

    /// How many commands clients have sent so far for their locks.
    pub(crate) async fn commands(&self) -> Option<u64> {
        Some(self.info("commandstats").await?.lines().filter_map(sent).sum())
    }

    async fn info(&self, section: &str) -> Option<String> {
        let mut connection = self.connection.clone();
        redis::cmd("INFO").arg(section).query_async(&mut connection).await.ok()
    }
}

/// The commands that a line such as `cmdstat_evalsha:calls=12,usec=345,...` stands for.
fn sent(line: &str) -> Option<u64> {
    let (command, numbers) = line.strip_prefix("cmdstat_")?.split_once(':')?;
    let (_, each) = SENT.iter().find(|(name, _)| *name == command)?;
    let calls = numbers.split(',').find_map(|number| number.strip_prefix("calls="))?;
    Some(each * calls.trim().parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::sent;

    #[test]
    fn commands_inside_scripts_do_not_count() {
        assert_eq!(sent("cmdstat_evalsha:calls=12,usec=345,usec_per_call=28.75"), Some(12));
        assert_eq!(sent("cmdstat_eval:calls=1,usec=3"), Some(1));
        assert_eq!(sent("cmdstat_subscribe:calls=4,usec=3"), Some(8));
        assert_eq!(sent("cmdstat_publish:calls=12,usec=34"), None);
        assert_eq!(sent("cmdstat_set:calls=12,usec=34"), None);
        assert_eq!(sent("# Commandstats"), None);
    }
}
