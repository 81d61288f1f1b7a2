//! The command `seckill`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use seckill::cli::Options;
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
            let _ = writeln!(std::io::stderr(), "seckill: {error}");
            // 130 is what shells report for a command that Ctrl-C has ended.
            ExitCode::from(if matches!(error, Error::Interrupted) { 130 } else { 2 })
        }
    }
}

/// Returns whether every mode kept what it promises.
async fn run(options: Options) -> Result<bool, Error> {
    let options = options.check()?;
    let json = options.json;
    // A path that cannot be written is found before the sale, not after it.
    let picture = options.plot.clone().map(|path| (create(&path), path));
    let picture = picture.map(|(file, path)| Ok::<_, Error>((file?, path))).transpose()?;

    let run = Run::prepare(options).await?;
    let header = run.header();
    if !json {
        print(&header);
    }
    let report = run.start().await?;
    if let Some((mut file, path)) = picture {
        file.write_all(draw(&header, &report).as_bytes()).map_err(|e| plot_error(&path, e))?;
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
    let modes: Vec<_> = report.modes.iter().map(|mode| (mode.mode.name(), &mode.waits)).collect();
    plot::svg(title, &modes)
}

fn create(path: &Path) -> Result<File, Error> {
    File::create(path).map_err(|error| plot_error(path, error))
}

fn plot_error(path: &Path, source: std::io::Error) -> Error {
    Error::Plot { path: path.display().to_string(), source }
}

fn print(text: &str) {
    // Whoever closes the pipe early has read enough; the exit code still tells.
    let _ = std::io::stdout().write_all(text.as_bytes());
}
