//! The command `hostel`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use hostel::cli::{Command, Options};
use hostel::run::Runs;
use hostel::settle::Settled;
use hostel::{Error, report, worker};

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let outcome =
        if options.worker { worker::work().await.map(|()| true) } else { run(options).await };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            let _ = writeln!(io::stderr(), "hostel: {error}");
            ExitCode::from(if let Error::Told(signal) = error { signal.exit_code() } else { 2 })
        }
    }
}

/// Returns whether all is as it must be.
async fn run(options: Options) -> Result<bool, Error> {
    let options = options.check()?;
    let (command, json) = (options.command, options.json);
    let runs = Runs::prepare(options).await?;
    let ok = match command {
        None => race(&runs, json).await,
        Some(Command::Recover) => recover(&runs, json).await,
        Some(Command::Check) => check(&runs, json).await,
    };
    runs.end().await;
    ok
}

async fn race(runs: &Runs, json: bool) -> Result<bool, Error> {
    if !json {
        print(&format!("{}\n", runs.header()));
    }
    for number in 1..=runs.count() {
        let report = runs.run(number).await?;
        if json {
            print(&format!("{}\n", serde_json::to_string(&report)?));
        } else if runs.count() == 1 {
            print(&report.text());
        } else {
            print(&format!("{number:>4}  {}", report.line()));
        }
        if !report.is_ok() {
            if runs.count() > 1 && !json {
                print(&format!("\n{}", report.text()));
            }
            return Ok(false);
        }
    }
    if runs.count() > 1 && !json {
        print(&format!("\nOK: {} runs in a row.\n", runs.count()));
    }
    Ok(true)
}

async fn recover(runs: &Runs, json: bool) -> Result<bool, Error> {
    let recovery = runs.recover().await?;
    if json {
        print(&format!("{}\n", serde_json::to_string(&recovery)?));
    } else {
        let Settled { captured, refunded } = recovery.settled;
        print(&format!("Recovered: {captured} payments captured, {refunded} refunded.\n"));
        for (student, why) in &recovery.left {
            print(&format!("- {student} cannot be settled now: {why}\n"));
        }
    }
    Ok(recovery.left.is_empty())
}

async fn check(runs: &Runs, json: bool) -> Result<bool, Error> {
    let audit = runs.check().await?;
    if json {
        print(&format!("{}\n", serde_json::to_string(&audit)?));
    } else {
        print(&report::audit_text(&audit));
    }
    Ok(audit.violations.is_empty())
}

fn print(text: &str) {
    // Whoever closes the pipe early has read enough; the exit code still tells.
    let _ = io::stdout().write_all(text.as_bytes());
}
