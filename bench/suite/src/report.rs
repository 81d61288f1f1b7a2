//! What a run has found, for people and for programs.

mod chart;
mod figures;
mod machine;
mod markdown;
mod row;
mod table;
mod targets;

use std::fs;

pub(crate) use self::row::Row;
use crate::{Error, cli::Options, run::Results};

/// Prints the tables, and writes the files that the options ask for.
pub(crate) fn write(options: &Options, results: &[Results<'_>]) -> Result<(), Error> {
    for results in results {
        println!("{}\n", table::title(results.plan));
        println!("{}", table::for_terminal(&table::of(results)));
        for error in table::errors(results) {
            println!("{error}");
        }
    }
    let targets = targets::all(results);
    if !targets.is_empty() {
        println!("Targets\n\n{}", table::for_terminal(&targets::table(&targets)));
    }
    if let Some(file) = &options.json {
        let rows: Vec<Row> = results.iter().flat_map(Row::all).collect();
        fs::write(file, serde_json::to_string_pretty(&rows)? + "\n")?;
    }
    if let Some(docs) = options.docs() {
        let charts = docs.join("benchmarks");
        fs::create_dir_all(&charts)?;
        figures::draw_all(results, &charts)?;
        fs::write(docs.join("benchmarks.md"), markdown::document(options, results, &targets))?;
        println!("{} is written.", docs.join("benchmarks.md").display());
    }
    Ok(())
}
