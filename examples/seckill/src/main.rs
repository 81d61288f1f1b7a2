//! The command `seckill`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use seckill::cli::Options;
use seckill::plot::Strip;
use seckill::report::Report;
use seckill::run::Run;
use seckill::{Error, plot, worker};

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let outcome =
        if options.worker { worker::work().await.map(|()| true) } else { run(options).await };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            let _ = writeln!(io::stderr(), "seckill: {error}");
            ExitCode::from(match error {
                Error::Told(signal) => signal.exit_code(),
                _ => 2,
            })
        }
    }
}

/// Returns whether every mode kept what it promises.
async fn run(options: Options) -> Result<bool, Error> {
    let options = options.check()?;
    let json = options.json;
    // A path that cannot be written is found before the sale, not after it.
    let picture = options.plot.clone();
    if let Some(path) = &picture {
        check_writable(path).map_err(|error| plot_error(path, error))?;
    }

    let run = Run::prepare(options).await?;
    let header = run.header();
    if !json {
        print(&header);
    }
    let report = run.start().await?;
    if let Some(path) = picture {
        fs::write(&path, draw(&header, &report)).map_err(|error| plot_error(&path, error))?;
    }
    if json {
        print(&format!("{}\n", report.json()?));
    } else {
        print(&format!("\n{}", report.text()));
    }
    Ok(report.is_ok())
}

fn draw(header: &str, report: &Report) -> String {
    let title = header.lines().next().unwrap_or_default();
    let modes: Vec<_> = report
        .modes
        .iter()
        .map(|mode| Strip { name: mode.mode.name(), remarks: mode.remarks(), waits: &mode.waits })
        .collect();
    plot::svg(title, &modes)
}

/// Leaves what is there as it is: the picture of an earlier run stands until there is a new one.
fn check_writable(path: &Path) -> io::Result<()> {
    match File::create_new(path) {
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            File::options().write(true).open(path).map(drop)
        }
        Err(error) => Err(error),
    }
}

fn plot_error(path: &Path, source: io::Error) -> Error {
    Error::Plot { path: path.display().to_string(), source }
}

fn print(text: &str) {
    // Whoever closes the pipe early has read enough; the exit code still tells.
    let _ = io::stdout().write_all(text.as_bytes());
}
