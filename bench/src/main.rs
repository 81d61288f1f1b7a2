//! What a lock costs, beside the same thing written by hand.
//!
//! All implementations take turns within each round, on one private Redis server, so that a noisy
//! machine is noisy for all of them. Compare the rows of one run; times of different runs say little.

mod implementation;
mod report;
mod workload;

use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use test_support::RedisServer;

use crate::{
    implementation::Implementation,
    report::Row,
    workload::{Contended, Sample, uncontended},
};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Measures cache-lock beside locks written by hand, on a private Redis server.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Rounds; each implementation runs once in each.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Acquisitions of the uncontended workload, in a round.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    cycles: u32,
    /// Callers of the contended workload, on two keys.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    callers: u32,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let server = RedisServer::start();
    match run(&options, &server).await {
        Ok(exclusive) if exclusive => ExitCode::SUCCESS,
        Ok(_) => {
            println!("A lock let two callers in at once.");
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("The benchmark failed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options, server: &RedisServer) -> Result<bool, Error> {
    let implementations = Implementation::all(&server.url()).await?;
    let steps = u64::from(options.rounds) * implementations.len() as u64 * 2;
    let bar = ProgressBar::new(steps)
        .with_style(ProgressStyle::with_template("{wide_bar} {pos}/{len} {elapsed}")?);
    let mut cycles = vec![Vec::new(); implementations.len()];
    let mut crowds = vec![Vec::new(); implementations.len()];
    let contended = Contended { callers: options.callers };
    for round in 0..options.rounds as usize {
        // Another one begins in each round: what runs after what is no advantage of anybody's.
        for turn in 0..implementations.len() {
            let index = (round + turn) % implementations.len();
            let implementation = &implementations[index];
            cycles[index].push(uncontended(implementation, server, options.cycles).await?);
            bar.inc(1);
            crowds[index].push(contended.run(implementation, server).await?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();

    println!("Uncontended: one acquire and release, {} in a round\n", options.cycles);
    print!("{}", table(&implementations, &cycles));
    println!("\nContended: {} callers at once on 2 keys, all of them\n", options.callers);
    print!("{}", table(&implementations, &crowds));
    println!(
        "\nMedians of {} rounds, the quartiles in brackets; commands are those that clients sent, \
         for each acquisition.",
        options.rounds
    );
    Ok(crowds.iter().flatten().all(|sample: &Sample| sample.exclusive))
}

fn table(implementations: &[Implementation], samples: &[Vec<Sample>]) -> String {
    let rows: Vec<Row> = implementations
        .iter()
        .zip(samples)
        .map(|(implementation, samples)| Row::new(implementation.name(), samples))
        .collect();
    report::table(&rows)
}
