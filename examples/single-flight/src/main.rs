//! The command `single-flight`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use single_flight::cli::Options;
use single_flight::fleet::Fleet;
use single_flight::{Error, worker};

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let outcome =
        if options.worker { worker::work().await.map(|()| true) } else { run(options).await };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            let _ = writeln!(io::stderr(), "single-flight: {error}");
            ExitCode::from(match error {
                Error::Ended(signal) => signal.exit_code(),
                _ => 2,
            })
        }
    }
}

/// Returns whether the fleet started as it should.
async fn run(options: Options) -> Result<bool, Error> {
    let json = options.json;
    let fleet = Fleet::prepare(options.check()?).await?;
    if !json {
        print(&fleet.header());
    }
    let report = fleet.start().await?;
    print(&if json { format!("{}\n", report.json()?) } else { format!("\n{}", report.text()) });
    Ok(report.is_ok())
}

fn print(text: &str) {
    // Whoever closes the pipe early has read enough; the exit code still tells.
    let _ = io::stdout().write_all(text.as_bytes());
}
