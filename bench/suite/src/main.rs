//! What a lock costs, beside the same thing written by hand and the other crates for it.
//!
//! All implementations of a workload take turns within each round, on private Redis servers, so that
//! a noisy machine is noisy for all of them. Compare what one run has measured; times of different
//! runs say little.

mod cli;
mod clock;
mod implementation;
mod report;
mod run;
mod section;
mod server;
mod task;
mod worker;
mod workload;

use std::process::ExitCode;

use clap::Parser;

use crate::{cli::Options, section::MeetingPlace};

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let outcome = if std::env::args().nth(1).is_some_and(|argument| argument == worker::ARGUMENT) {
        worker::main()
    } else {
        benchmark(&Options::parse())
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("The benchmark failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn benchmark(options: &Options) -> Result<(), Error> {
    let meeting = MeetingPlace::new()?;
    let plans = workload::plan(options, meeting.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let results = runtime.block_on(run::all(&plans))?;
    report::write(options, &results)
}
