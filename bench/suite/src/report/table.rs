//! Tables, in Markdown and on a terminal.

use super::Row;
use crate::{cli::Workload, run::Results, workload::Plan};

/// Cells; the first line are the heads of the columns.
pub(super) type Table = Vec<Vec<String>>;

/// Of a workload's section.
pub(super) fn title(plan: &Plan) -> String {
    format!("{}: {}", name(plan.workload), plan.size)
}

fn name(workload: Workload) -> &'static str {
    match workload {
        Workload::Uncontended => "(a) One caller, nobody else about",
        Workload::Seckill => "(b) Seckill, all callers of one process at once on two keys",
        Workload::HandOff => "(c) Hand-off between two processes",
        Workload::Processes => "(d) Many callers of several processes at once on one key",
        Workload::Scaling => "(e) The same callers from more and more processes",
        Workload::IdleKeys => "(f) One caller, keys of others on the server",
        Workload::Leases => "(g) Locks that are held",
        Workload::ForeignHolder => "(h) Waiting for a foreign program",
        Workload::Burst => "(i) Many callers at once, each on a free key",
    }
}

pub(super) fn of(results: &Results<'_>) -> Table {
    let rows = Row::all(results);
    match results.plan.workload {
        Workload::Leases => leases(&rows),
        _ => waits(results, &rows),
    }
}

fn waits(results: &Results<'_>, rows: &[Row]) -> Table {
    let figure = match results.plan.workload {
        Workload::Uncontended | Workload::IdleKeys => "a cycle",
        Workload::HandOff | Workload::ForeignHolder => "a hand-off",
        _ => "all of them",
    };
    let heads = [
        "implementation",
        "settings",
        figure,
        "from .. to",
        "ratio",
        "errors",
        "commands sent",
        "commands run",
        "p50",
        "p99",
        "max",
        "client CPU",
        "server CPU",
    ];
    let mut table = vec![heads.map(str::to_owned).to_vec()];
    for (index, row) in rows.iter().enumerate() {
        let first = rows[reference(results, index)].figure_us;
        table.push(vec![
            row.implementation.to_owned(),
            row.settings.clone(),
            time(row.figure_us),
            format!("{} .. {}", time(row.figure_us_min), time(row.figure_us_max)),
            digits(row.figure_us / first),
            row.errors.to_string(),
            digits(row.commands_per_acquisition),
            digits(row.info_commands_per_acquisition),
            time(row.p50_us),
            time(row.p99_us),
            time(row.max_us),
            time(row.client_cpu_us_per_acquisition),
            time(row.server_cpu_us_per_acquisition),
        ]);
    }
    table
}

/// What went wrong, a line for each implementation of which something did.
pub(super) fn errors(results: &Results<'_>) -> Vec<String> {
    let rows = Row::all(results).into_iter().filter(|row| row.errors > 0);
    rows.map(|row| {
        let error = row.first_error.as_deref().unwrap_or("sections overlapped, or locks were lost");
        format!("{}, {}: {error}", row.implementation, row.settings)
    })
    .collect()
}

/// What a row is compared with: the first one under the same conditions, or, where the conditions
/// are what matters, the first one of the same implementation.
fn reference(results: &Results<'_>, index: usize) -> usize {
    let cases = &results.cases;
    let own = &cases[index].case;
    let first = match results.plan.workload {
        Workload::IdleKeys => cases.iter().position(|other| other.case.kind == own.kind),
        _ => cases.iter().position(|other| other.case.variant == own.variant),
    };
    first.unwrap_or(index)
}

fn leases(rows: &[Row]) -> Table {
    let heads = [
        "implementation",
        "settings",
        "held for",
        "held",
        "failed or lost",
        "commands sent/s",
        "commands run/s",
        "client CPU",
        "server CPU",
    ];
    let mut table = vec![heads.map(str::to_owned).to_vec()];
    for row in rows {
        let seconds = row.wall_ms / 1e3;
        let held = row.acquisitions as f64;
        // Of one core.
        let share = |us_each: f64| format!("{} %", digits(us_each * held / 1e4 / seconds));
        table.push(vec![
            row.implementation.to_owned(),
            row.settings.clone(),
            time(seconds * 1e6),
            row.acquisitions.to_string(),
            row.errors.to_string(),
            format!("{:.0}", row.commands_per_acquisition * held / seconds),
            format!("{:.0}", row.info_commands_per_acquisition * held / seconds),
            share(row.client_cpu_us_per_acquisition),
            share(row.server_cpu_us_per_acquisition),
        ]);
    }
    table
}

pub(super) fn markdown(table: &Table) -> String {
    let mut text = String::new();
    for (index, line) in table.iter().enumerate() {
        text += &format!("| {} |\n", line.join(" | "));
        if index == 0 {
            // Names to the left, numbers to the right.
            let rule = line.iter().enumerate().map(|(column, _)| match column {
                0 | 1 => "---",
                _ => "--:",
            });
            text += &format!("|{}|\n", rule.collect::<Vec<_>>().join("|"));
        }
    }
    text
}

pub(super) fn for_terminal(table: &Table) -> String {
    let columns = table.first().map_or(0, Vec::len);
    let width = |column: usize| table.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let mut text = String::new();
    for line in table {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < 2 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// Three digits.
pub(super) fn digits(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let decimals = match value.abs() {
        0.0 => 0,
        value if value < 0.0995 => 3,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A time in microseconds, with a fitting unit.
pub(super) fn time(us: f64) -> String {
    if !us.is_finite() {
        return "-".to_owned();
    }
    match us {
        us if us < 999.5 => format!("{} µs", digits(us)),
        us if us < 999_500.0 => format!("{} ms", digits(us / 1e3)),
        us => format!("{} s", digits(us / 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        assert_eq!(digits(0.0), "0");
        assert_eq!(digits(0.0456), "0.046");
        assert_eq!(digits(1.234), "1.23");
        assert_eq!(digits(12.34), "12.3");
        assert_eq!(digits(1234.5), "1234");
        assert_eq!(time(0.25), "0.25 µs");
        assert_eq!(time(1_500.0), "1.50 ms");
        assert_eq!(time(2_000_000.0), "2.00 s");
        assert_eq!(time(f64::NAN), "-");
    }

    #[test]
    fn tables_line_up() {
        let table = vec![
            vec!["a".to_owned(), "b".to_owned(), "c".to_owned()],
            vec!["long".to_owned(), String::new(), "100".to_owned()],
        ];
        assert_eq!(for_terminal(&table), "a     b    c\nlong     100\n");
        assert_eq!(markdown(&table), "| a | b | c |\n|---|---|--:|\n| long |  | 100 |\n");
    }
}
