//! The command line.

use std::time::Duration;

use clap::Parser;
use example_support::ServerUrl;

use crate::Error;

/// Tasks of all processes. Each takes some 4 KiB where it runs in memory.
const MOST_TASKS: u32 = 100_000;

const EXIT_CODES: &str = "\
Exit codes:
  0    every task was served, with one pool per process and one migration for the fleet
  1    that is not so; the report says what is wrong
  2    an argument is wrong, or a server cannot be used
  130  interrupted (143: terminated)";

/// The start of a fleet: one pool of connections per process, one schema migration for all.
///
/// With neither --redis nor --mongodb it runs inside this process alone, in which each process of
/// the fleet is a lock manager of its own.
#[derive(Debug, Clone, Parser)]
#[command(name = "single-flight", version, after_help = EXIT_CODES)]
pub struct Options {
    /// Processes of the fleet.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub processes: u32,

    /// Tasks of each process, which all start at once.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub tasks: u32,

    /// How many attempts at the migration fail. A task asks ten times at most.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=9))]
    pub failures: u32,

    /// How long each step of the migration takes, in milliseconds.
    #[arg(long, default_value_t = 50, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub step: u64,

    /// Kills the process that migrates, half way through the migration. Needs Redis and MongoDB.
    #[arg(long)]
    pub kill: bool,

    /// Prints one JSON object instead of the report.
    #[arg(long)]
    pub json: bool,

    /// Leaves the run's MongoDB database in place.
    #[arg(long)]
    pub keep: bool,

    /// Redis server for the locks and the record of the migration.
    #[arg(long, value_name = "URL", env = "REDIS_URL", hide_env_values = true)]
    pub redis: Option<ServerUrl>,

    /// MongoDB server for what is migrated.
    #[arg(long, value_name = "URL", env = "MONGODB_URI", hide_env_values = true)]
    pub mongodb: Option<ServerUrl>,

    /// This is a worker process: its job comes on standard input.
    #[arg(long, hide = true)]
    pub worker: bool,
}

impl Options {
    /// What single arguments cannot check on their own.
    ///
    /// # Errors
    /// [`Error::Usage`] with a sentence that says what to change.
    pub fn check(mut self) -> Result<Self, Error> {
        // An empty variable is how a shell unsets one for a single command.
        self.redis = self.redis.filter(|url| !url.is_empty());
        self.mongodb = self.mongodb.filter(|url| !url.is_empty());
        let missing = match (&self.redis, &self.mongodb) {
            (Some(_), None) => Some("--mongodb"),
            (None, Some(_)) => Some("--redis"),
            _ => None,
        };
        if let Some(missing) = missing {
            return Err(Error::Usage(format!(
                "a fleet of processes shares both its locks and its database: also give {missing}"
            )));
        }
        let tasks = self.processes.saturating_mul(self.tasks);
        if tasks > MOST_TASKS {
            return Err(Error::Usage(format!(
                "--processes {} with --tasks {} each make {tasks} tasks, and {MOST_TASKS} is the most: \
                 lower one of the two",
                self.processes, self.tasks
            )));
        }
        if self.kill && self.redis.is_none() {
            return Err(Error::Usage(
                "--kill needs real processes: also give --redis and --mongodb".to_owned(),
            ));
        }
        if self.kill && self.processes < 2 {
            return Err(Error::Usage("--kill needs --processes 2 or more".to_owned()));
        }
        if self.keep && self.mongodb.is_none() {
            return Err(Error::Usage(
                "--keep needs a database to leave in place: also give --mongodb".to_owned(),
            ));
        }
        Ok(self)
    }

    /// How long each step of the migration takes.
    #[must_use]
    pub fn step_time(&self) -> Duration {
        Duration::from_millis(self.step)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use test_support::unbounded_numbers;

    use super::Options;

    #[test]
    fn each_number_has_its_bounds() {
        assert_eq!(unbounded_numbers(&Options::command()), Vec::<String>::new());
    }
}
