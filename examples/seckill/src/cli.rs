//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use example_support::ServerUrl;
use serde::{Deserialize, Serialize};

use crate::Error;

const LONGEST_THINK: Duration = Duration::from_secs(60);

const EXIT_CODES: &str = "\
Exit codes:
  0    every mode kept what it promises; a verdict INCOMPLETE names buyers who got no answer
  1    a mode broke its promise: a protected one oversold or lost an order, or fenced did not
       refuse the write of --stall
  2    an argument is wrong, or a server cannot be used
  130  interrupted (143: terminated)";

/// A flash sale: many buyers at once, few pieces, and nothing may be sold twice.
///
/// With neither --redis nor --mongodb it runs inside this process alone.
#[derive(Debug, Clone, Parser)]
#[command(name = "seckill", version, after_help = EXIT_CODES)]
pub struct Options {
    /// How a purchase is guarded.
    #[arg(long, value_enum, default_value_t = Selection::All)]
    pub mode: Selection,

    /// Pieces of each item.
    #[arg(long, default_value_t = 300, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(0..=1_000_000_000))]
    pub stock: u32,

    /// Buyers, all released at once; each wants one piece.
    #[arg(long, default_value_t = 1000, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub buyers: u32,

    /// Items, among which the buyers are spread evenly.
    #[arg(long, default_value_t = 2, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub items: u32,

    /// Time between reading the stock and writing it.
    #[arg(long, default_value = "1ms", value_parser = parse_duration)]
    pub think: Duration,

    /// One buyer freezes for longer than its lease, then writes. Concerns lock and fenced.
    #[arg(long)]
    pub stall: bool,

    /// Spreads the buyers over this many processes; more than one needs Redis and MongoDB.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub processes: u32,

    /// Draws the distribution of the waits into this SVG file.
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,

    /// Prints one JSON object instead of the report.
    #[arg(long)]
    pub json: bool,

    /// Leaves the run's MongoDB database in place.
    #[arg(long)]
    pub keep: bool,

    /// Redis server for the locks.
    #[arg(long, value_name = "URL", env = "REDIS_URL", hide_env_values = true)]
    pub redis: Option<ServerUrl>,

    /// MongoDB server for items and orders; needs the cargo feature `mongodb`.
    #[arg(long, value_name = "URL", env = "MONGODB_URI", hide_env_values = true)]
    pub mongodb: Option<ServerUrl>,

    /// The first worker process dies as soon as one of its purchases has done this step.
    #[arg(long, value_enum, hide = true)]
    pub crash_after: Option<Step>,

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
            (None, None) => Some("--redis and --mongodb"),
            (None, Some(_)) => Some("--redis"),
            (Some(_), None) => Some("--mongodb"),
            (Some(_), Some(_)) => None,
        };
        if let Some(missing) = missing.filter(|_| self.processes > 1) {
            return Err(Error::Usage(format!(
                "--processes {} needs servers that the processes share: also give {missing}",
                self.processes
            )));
        }
        if self.stall && !self.mode.modes().iter().any(|mode| mode.takes_lock()) {
            return Err(Error::Usage(
                "--stall needs a mode with a lease to outlive: --mode lock, fenced or all"
                    .to_owned(),
            ));
        }
        if self.keep && self.mongodb.is_none() {
            return Err(Error::Usage(
                "--keep needs a database to leave in place: also give --mongodb".to_owned(),
            ));
        }
        if self.stall && (self.stock == 0 || self.buyers <= self.items) {
            return Err(Error::Usage(
                "--stall needs a piece to sell and a second buyer of the first item: \
                 raise --stock or --buyers"
                    .to_owned(),
            ));
        }
        if self.crash_after.is_some() && self.processes == 1 {
            return Err(Error::Usage("--crash-after needs --processes 2 or more".to_owned()));
        }
        Ok(self)
    }
}

/// How a purchase is guarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Read, think, write: not at all.
    Naive,
    /// The same under the lock.
    Lock,
    /// Under the lock, and the database refuses writes of older holders.
    Fenced,
    /// One conditional update, no lock.
    Atomic,
}

impl Mode {
    /// The name on the command line and in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Lock => "lock",
            Self::Fenced => "fenced",
            Self::Atomic => "atomic",
        }
    }

    /// Whether a purchase takes the lock.
    #[must_use]
    pub fn takes_lock(self) -> bool {
        matches!(self, Self::Lock | Self::Fenced)
    }
}

/// The modes to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Selection {
    /// Read, think, write; no lock.
    Naive,
    /// The same under the lock.
    Lock,
    /// Under the lock, every write carries the fencing token.
    Fenced,
    /// The database's own conditional update, no lock.
    Atomic,
    /// One after the other.
    All,
}

impl Selection {
    /// The modes in the order in which they run.
    #[must_use]
    pub fn modes(self) -> &'static [Mode] {
        match self {
            Self::Naive => &[Mode::Naive],
            Self::Lock => &[Mode::Lock],
            Self::Fenced => &[Mode::Fenced],
            Self::Atomic => &[Mode::Atomic],
            Self::All => &[Mode::Naive, Mode::Lock, Mode::Fenced, Mode::Atomic],
        }
    }
}

/// The steps of a purchase after which a crash can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
pub enum Step {
    /// The fence is raised.
    Claim,
    /// The stock is written.
    ItemUpdate,
    /// The order is inserted.
    OrderInsert,
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = &text[..text.len() - unit.len()];
    let wrong = || "write it like 500us, 1ms or 2s".to_owned();
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let duration = match unit {
        "us" => Duration::from_micros(number),
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        _ => return Err(wrong()),
    };
    if duration > LONGEST_THINK {
        return Err(format!("a buyer thinks for {LONGEST_THINK:?} at most"));
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use test_support::unbounded_numbers;

    use super::*;

    #[test]
    fn each_number_has_its_bounds() {
        assert_eq!(unbounded_numbers(&Options::command()), Vec::<String>::new());
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(parse_duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(parse_duration("0ms"), Ok(Duration::ZERO));
        assert_eq!(parse_duration("2s"), Ok(Duration::from_secs(2)));
        for wrong in ["", "1", "ms", "-1ms", "1h", "1 ms", "61s", "1.5ms", "99999999999999999999s"]
        {
            assert!(parse_duration(wrong).is_err(), "{wrong:?}");
        }
    }
}
