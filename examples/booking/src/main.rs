//! The command `booking`.

use std::io::{self, Write};
use std::process::ExitCode;

use booking::cli::{Command, Options};
use booking::run::{self, Error};
use booking::storm;
use clap::Parser;
use tracing::Level;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse().tidy();
    log(&options);
    let outcome = match &options.command {
        None => run::serve(&options).await.map(|()| true),
        Some(Command::CreateOrganiser { email }) => {
            run::create_organiser(&options, email).await.map(|()| true)
        }
        Some(Command::Storm(wanted)) => storm::run(&options, wanted).await.map(|report| {
            // Whoever closes the pipe early has read enough; the exit code still tells.
            let _ = io::stdout().write_all(report.text().as_bytes());
            report.faults.is_empty()
        }),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            let _ = writeln!(io::stderr(), "booking: {error}");
            ExitCode::from(if let Error::Told(signal) = error { signal.exit_code() } else { 2 })
        }
    }
}

/// Lines of JSON on standard error, or of text for people. In both what a client chose is escaped.
fn log(options: &Options) {
    let level = if options.no_access_log { Level::WARN } else { Level::INFO };
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level);
    if options.dev {
        log.with_ansi(false).init();
    } else {
        log.json().init();
    }
}
