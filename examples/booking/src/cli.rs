//! The command line.

use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use example_support::ServerUrl;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::server::Limits;

const ENVIRONMENT: &str = "\
Environment:
  BOOKING_JWT_SECRET          what tokens are signed with: 32 random bytes or more, the same for all
                              replicas, as `openssl rand -hex 32` makes them
  BOOKING_ORGANISER_PASSWORD  for create-organiser";

/// A service that books slots.
///
/// With neither --redis nor --mongodb everything is in the memory of this process, for one replica.
#[derive(Debug, Clone, Parser)]
#[command(name = "booking", version, after_help = ENVIRONMENT)]
pub struct Options {
    /// For trying it out: a secret of its own if there is none, and some users and slots.
    #[arg(long)]
    pub dev: bool,

    /// Where to listen: an address or a name, and a port; port 0 takes a free one. The first line of
    /// output says where.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "HOST:PORT")]
    pub listen: String,

    /// Redis server for the locks.
    #[arg(long, value_name = "URL", env = "REDIS_URL", hide_env_values = true, global = true)]
    pub redis: Option<ServerUrl>,

    /// MongoDB server for users and slots.
    #[arg(long, value_name = "URL", env = "MONGODB_URI", hide_env_values = true, global = true)]
    pub mongodb: Option<ServerUrl>,

    /// The database on that server.
    #[arg(long, default_value = "booking", global = true)]
    pub database: String,

    /// So many slots of a day one user may have.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub per_day: u64,

    /// So many days ahead a slot may start.
    #[arg(long, default_value_t = 366, value_parser = clap::value_parser!(u16).range(1..=3660))]
    pub horizon_days: u16,

    /// How long a login lasts, in minutes.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=24 * 60))]
    pub token_minutes: u64,

    /// A proxy is in front, and the last address of `X-Forwarded-For` is what it says of the client.
    #[arg(long)]
    pub trust_proxy: bool,

    /// So many connections at once; further ones may ask how the service does, and get a 503
    /// otherwise. Never more than there are file descriptors for.
    #[arg(long, default_value_t = 16_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: u32,

    /// How many seconds a client has to send the head of a request; so long an idle connection is
    /// kept, too.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub head_seconds: u64,

    /// How many seconds a client has to send the body of a request.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub body_seconds: u64,

    /// How many seconds a client may take nothing of what is sent to it.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub write_seconds: u64,

    /// How many seconds requests under way have to end when the service ends.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(..=600))]
    pub drain_seconds: u64,

    /// Milliseconds between reading a slot and booking it, to see 423 by hand; needs --dev.
    #[arg(long, value_name = "MS", requires = "dev", value_parser = clap::value_parser!(u64).range(..=60_000))]
    pub think_ms: Option<u64>,

    /// Logins and registrations are not limited, for tests; needs --dev.
    #[arg(long, requires = "dev")]
    pub unlimited: bool,

    /// Requests are not logged; warnings and errors are.
    #[arg(long)]
    pub no_access_log: bool,

    /// Ends when standard input does, since whoever started it is gone then.
    #[arg(long, hide = true)]
    pub end_with_stdin: bool,

    /// The time that the service takes it to be when it starts, for tests: 2027-12-31T23:30:00Z.
    #[arg(long, hide = true, value_name = "TIME", value_parser = time)]
    pub now: Option<OffsetDateTime>,

    /// What to do, other than to serve.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What there is to do besides serving.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Opens an account that may create slots; needs --mongodb.
    CreateOrganiser {
        /// Its address.
        email: String,
    },
    /// Starts replicas, lets clients loose on them, and checks that nothing was booked twice.
    Storm(StormOptions),
}

/// What a storm is to be like.
#[derive(Debug, Clone, Copy, Args)]
pub struct StormOptions {
    /// Processes of the service; more than one need --redis and --mongodb.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub replicas: u16,

    /// Clients of each replica, a connection each.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=5000))]
    pub clients: u16,

    /// Slots that they all want.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub slots: u16,

    /// Seconds of listing, booking and cancelling after the race.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=3600))]
    pub seconds: u16,
}

fn time(text: &str) -> Result<OffsetDateTime, time::error::Parse> {
    OffsetDateTime::parse(text, &Rfc3339)
}

impl Options {
    /// The URLs that are not empty: an empty variable is how a shell unsets one for a command.
    #[must_use]
    pub fn tidy(mut self) -> Self {
        self.redis = self.redis.filter(|url| !url.is_empty());
        self.mongodb = self.mongodb.filter(|url| !url.is_empty());
        self
    }

    /// The bounds of the server.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            connections: self.connections,
            head: Duration::from_secs(self.head_seconds),
            write: Duration::from_secs(self.write_seconds),
            drain: Duration::from_secs(self.drain_seconds),
        }
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
