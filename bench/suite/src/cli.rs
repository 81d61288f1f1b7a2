//! The command line.

use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};

/// Measures cache-lock beside locks written by hand and the other lock crates for Redis.
///
/// It starts Redis servers of its own, lets every implementation run every workload in turn, round
/// after round, and writes docs/benchmarks.md with its charts. The whole takes about half an hour on
/// two cores; keep the machine quiet meanwhile.
#[derive(Debug, Parser)]
#[command(name = "lock-bench", bin_name = "lock-bench", version)]
pub(crate) struct Options {
    /// A look in less than a minute: fewer rounds, sizes and settings, and no docs unless --docs
    /// says where
    #[arg(long)]
    pub(crate) quick: bool,
    /// Runs this workload only; may be given several times
    #[arg(long, value_name = "WORKLOAD")]
    pub(crate) only: Vec<Workload>,
    /// Runs implementations only whose name and settings contain this text, such as "rslock" or
    /// "retry 5 ms"; may be given several times. The first one of each workload stays, for
    /// comparison
    #[arg(long, value_name = "TEXT")]
    pub(crate) implementation: Vec<String>,
    /// Rounds, in each of which every implementation runs once [default: 7, with --quick 2]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// Writes the results as an array of JSON objects, one for each row of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Writes benchmarks.md and the charts into this directory [default: docs/ of the repository,
    /// if the run is complete]
    #[arg(long, value_name = "DIR")]
    pub(crate) docs: Option<PathBuf>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Workload {
    /// One caller acquires and releases, alone
    Uncontended,
    /// 1000 callers of one process at once, on two keys
    Seckill,
    /// Two processes take turns
    HandOff,
    /// Four processes with 250 callers each at once, on one key
    Processes,
    /// 512 callers of 1 to 64 processes at once, on one key
    Scaling,
    /// One caller, on servers with 0 to a million keys of others
    IdleKeys,
    /// One process holds 100,000 locks for a minute
    Leases,
    /// A foreign program holds the lock, and tells no waiter of the release
    ForeignHolder,
    /// 50,000 callers of one process at once, and 200,000, each on a key of its own
    Burst,
}

impl Workload {
    pub(crate) const ALL: [Self; 9] = [
        Self::Uncontended,
        Self::Seckill,
        Self::HandOff,
        Self::Processes,
        Self::Scaling,
        Self::IdleKeys,
        Self::Leases,
        Self::ForeignHolder,
        Self::Burst,
    ];

    /// As on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uncontended => "uncontended",
            Self::Seckill => "seckill",
            Self::HandOff => "hand-off",
            Self::Processes => "processes",
            Self::Scaling => "scaling",
            Self::IdleKeys => "idle-keys",
            Self::Leases => "leases",
            Self::ForeignHolder => "foreign-holder",
            Self::Burst => "burst",
        }
    }
}

impl Options {
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 2 } else { 7 })
    }

    pub(crate) fn runs(&self, workload: Workload) -> bool {
        self.only.is_empty() || self.only.contains(&workload)
    }

    /// Where the report goes. An incomplete run does not take the place of a complete one.
    pub(crate) fn docs(&self) -> Option<PathBuf> {
        let complete = !self.quick && self.only.is_empty() && self.implementation.is_empty();
        let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        self.docs.clone().or_else(|| complete.then(own))
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, ValueEnum};
    use test_support::unbounded_numbers;

    use super::{Options, Workload};

    #[test]
    fn each_number_has_its_bounds() {
        assert_eq!(unbounded_numbers(&Options::command()), Vec::<String>::new());
    }

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
        for workload in Workload::ALL {
            let value = workload.to_possible_value();
            assert_eq!(value.expect("none is hidden").get_name(), workload.name());
        }
    }
}
