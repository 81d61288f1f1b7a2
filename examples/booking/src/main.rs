//! The command `booking`.

use std::io::{self, Write};
use std::process::ExitCode;

use booking::cli::{Command, Options};
use booking::run;
use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse().tidy();
    log(options.dev);
    let outcome = match &options.command {
        None => run::serve(&options).await,
        Some(Command::CreateOrganiser { email }) => run::create_organiser(&options, email).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "booking: {error}");
            ExitCode::from(2)
        }
    }
}

/// Lines of JSON on standard error, or of text for people. In both what a client chose is escaped.
fn log(dev: bool) {
    let log =
        tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(tracing::Level::INFO);
    if dev {
        log.with_ansi(false).init();
    } else {
        log.json().init();
    }
}
