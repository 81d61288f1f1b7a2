//! A table for people.

use std::time::Duration;

use crate::workload::Sample;

/// What one implementation took.
#[derive(Debug)]
pub(crate) struct Row {
    name: String,
    quartiles: [Duration; 3],
    commands: f64,
}

impl Row {
    pub(crate) fn new(name: String, samples: &[Sample]) -> Self {
        let mut times: Vec<Duration> = samples.iter().map(|sample| sample.time).collect();
        let mut commands: Vec<f64> = samples.iter().map(|sample| sample.commands).collect();
        times.sort();
        commands.sort_by(f64::total_cmp);
        let quartiles = [1, 2, 3].map(|quarter| times[(times.len() - 1) * quarter / 4]);
        Self { name, quartiles, commands: commands[(commands.len() - 1) / 2] }
    }
}

/// The rows, each compared with the first.
pub(crate) fn table(rows: &[Row]) -> String {
    let floor = rows.first().map_or(1.0, |row| row.quartiles[1].as_secs_f64());
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or_default();
    let mut table =
        format!("{:width$}  {:>10}  {:>23}  {:>6}  {:>8}\n", "", "time", "", "ratio", "commands");
    for row in rows {
        let [first, median, third] = row.quartiles.map(milliseconds);
        let spread = format!("[{first} .. {third}]");
        let ratio = row.quartiles[1].as_secs_f64() / floor;
        table += &format!(
            "{:width$}  {median:>10}  {spread:>23}  {ratio:>6.2}  {:>8.1}\n",
            row.name, row.commands
        );
    }
    table
}

fn milliseconds(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1000.0;
    match milliseconds {
        0.0..1.0 => format!("{:.1} us", milliseconds * 1000.0),
        _ => format!("{milliseconds:.1} ms"),
    }
}
