//! The Redis server's own count of what it was asked.

use std::time::Duration;

use example_support::ServerUrl;
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;

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
        stats.scripts().await.map(|_| stats)
    }

    /// The server's version.
    pub(crate) async fn version(&self) -> Option<String> {
        let info = self.info("server").await?;
        info.lines().find_map(|line| line.strip_prefix("redis_version:")).map(str::to_owned)
    }

    /// How many scripts it has run. The commands inside of scripts are counted under their names, as
    /// those of clients are, so plain commands cannot be told apart.
    pub(crate) async fn scripts(&self) -> Option<u64> {
        Some(self.info("commandstats").await?.lines().filter_map(calls).sum())
    }

    async fn info(&self, section: &str) -> Option<String> {
        let mut connection = self.connection.clone();
        redis::cmd("INFO").arg(section).query_async(&mut connection).await.ok()
    }
}

/// The calls of scripts in a line such as `cmdstat_evalsha:calls=12,usec=345,...`.
fn calls(line: &str) -> Option<u64> {
    let (command, numbers) = line.strip_prefix("cmdstat_")?.split_once(':')?;
    if command != "eval" && command != "evalsha" {
        return None;
    }
    numbers.split(',').find_map(|number| number.strip_prefix("calls="))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::calls;

    #[test]
    fn scripts_alone_count() {
        assert_eq!(calls("cmdstat_evalsha:calls=12,usec=345,usec_per_call=28.75"), Some(12));
        assert_eq!(calls("cmdstat_eval:calls=1,usec=3"), Some(1));
        assert_eq!(calls("cmdstat_get:calls=12,usec=34"), None);
        assert_eq!(calls("# Commandstats"), None);
    }
}
