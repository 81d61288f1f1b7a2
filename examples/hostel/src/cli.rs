//! The command line.

use std::time::Duration;

use clap::{Parser, Subcommand};
use example_support::ServerUrl;

use crate::Error;
use crate::hostel::Step;

const LONGEST: Duration = Duration::from_secs(60);

const EXIT_CODES: &str = "\
Exit codes:
  0    beds, students, payments and the provider's books agree
  1    they do not, or something could not be settled; the report names it
  2    an argument is wrong, or a server cannot be used
  130  interrupted (143: terminated)";

/// Students race for beds in rooms: pay, then reserve, or be refunded.
///
/// With neither --redis nor --mongodb it runs inside this process alone.
#[derive(Debug, Clone, Parser)]
#[command(name = "hostel", version, after_help = EXIT_CODES)]
pub struct Options {
    /// What to do; without it, students race.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Students, all at the door at once.
    #[arg(long, default_value_t = 500, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub students: u32,

    /// Rooms. Each has a price of its own.
    #[arg(long, default_value_t = 20, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rooms: u32,

    /// Beds in each room.
    #[arg(long, default_value_t = 8, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub capacity: u32,

    /// How much goes wrong, from 0 to 1: payments that fail or time out, students who are missing or
    /// vanish, calls that are dropped half way, students who call from two places at once.
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true, value_parser = parse_share)]
    pub chaos: f64,

    /// How long each call to the payment provider takes.
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = parse_duration)]
    pub payment_time: Duration,

    /// Makes the same students want the same, and the same go wrong. Who comes first still differs.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(0..=u64::from(u32::MAX)))]
    pub seed: u64,

    /// Spreads the students over this many processes; more than one needs Redis and MongoDB.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub processes: u32,

    /// Kills one of the processes each time, with SIGKILL, and starts another in its place.
    #[arg(long, value_name = "TIME", value_parser = parse_pause)]
    pub kill_every: Option<Duration>,

    /// Runs in a row, each with a hostel and a seed of its own. Ends with the first that is not sound.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,

    /// Prints one JSON object for each run instead of the report.
    #[arg(long, global = true)]
    pub json: bool,

    /// Uses this MongoDB database and leaves it in place. What an earlier run left in it is recovered
    /// first. Without it each run has a database of its own, which is dropped in the end.
    #[arg(long, value_name = "NAME", global = true, value_parser = parse_name)]
    pub database: Option<String>,

    /// Redis server for the locks.
    #[arg(long, value_name = "URL", env = "REDIS_URL", hide_env_values = true, global = true)]
    pub redis: Option<ServerUrl>,

    /// MongoDB server for rooms, students and payments.
    #[arg(long, value_name = "URL", env = "MONGODB_URI", hide_env_values = true, global = true)]
    pub mongodb: Option<ServerUrl>,

    /// The first process dies as soon as one of its calls has done this step.
    #[arg(long, value_enum, hide = true)]
    pub crash_after: Option<Step>,

    /// This is a worker process: its job comes on standard input.
    #[arg(long, hide = true)]
    pub worker: bool,
}

/// What else can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Settles what a crash left in --database. Others may be at work meanwhile.
    Recover,
    /// Checks what is in --database, when nobody is at work.
    Check,
}

impl Command {
    fn name(self) -> &'static str {
        match self {
            Self::Recover => "recover",
            Self::Check => "check",
        }
    }
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
        let usage = |text: String| Err(Error::Usage(text));

        let missing = match (&self.redis, &self.mongodb) {
            (None, None) => Some("--redis and --mongodb"),
            (None, Some(_)) => Some("--redis"),
            (Some(_), None) => Some("--mongodb"),
            (Some(_), Some(_)) => None,
        };
        if let Some(missing) = missing {
            if self.command == Some(Command::Recover) {
                return usage(format!(
                    "recover needs the servers that the crash left something on: also give {missing}"
                ));
            }
            if self.processes > 1 {
                return usage(format!(
                    "--processes {} needs servers that the processes share: also give {missing}",
                    self.processes
                ));
            }
        }
        if let (Some(command), None) = (self.command, &self.database) {
            let name = command.name();
            return usage(format!("{name} needs to know which hostel: also give --database"));
        }
        if self.database.is_some() && self.mongodb.is_none() {
            return usage("--database needs a server to be on: also give --mongodb".to_owned());
        }
        if self.database.is_some() && self.runs > 1 {
            return usage("--runs have a database each: leave out --database".to_owned());
        }
        if self.kill_every.is_some() && self.processes == 1 {
            return usage("--kill-every needs --processes 2 or more".to_owned());
        }
        if self.crash_after.is_some() && self.processes == 1 {
            return usage("--crash-after needs --processes 2 or more".to_owned());
        }
        Ok(self)
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a number from 0 to 1, such as 0.2".to_owned()),
    }
}

/// What every server accepts, without a look at its rules.
fn parse_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=60).contains(&text.len()) && text.chars().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("write 1 to 60 letters, digits, `_` or `-`".to_owned())
    }
}

fn parse_pause(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("processes need some time to live".to_owned()),
        pause => Ok(pause),
    }
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
    if duration > LONGEST { Err(format!("{LONGEST:?} at most")) } else { Ok(duration) }
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
        assert_eq!(parse_pause("1s"), Ok(Duration::from_secs(1)));
        for wrong in ["", "1", "ms", "-1ms", "1h", "1 ms", "61s", "1.5ms", "99999999999999999999s"]
        {
            assert!(parse_duration(wrong).is_err(), "{wrong:?}");
        }
        assert!(parse_pause("0s").is_err());
    }

    #[test]
    fn a_share_is_between_nothing_and_all() {
        for (text, share) in [("0", 0.0), ("0.2", 0.2), ("1", 1.0)] {
            assert_eq!(parse_share(text), Ok(share));
        }
        for wrong in ["", "-0.1", "1.1", "20%", "NaN", "inf"] {
            assert!(parse_share(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn names_are_plain() {
        assert_eq!(parse_name("hostel_1-a"), Ok("hostel_1-a".to_owned()));
        for wrong in ["", "a.b", "a b", "$a", "ä", &"a".repeat(61)] {
            assert!(parse_name(wrong).is_err(), "{wrong:?}");
        }
    }
}
