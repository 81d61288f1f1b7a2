//! Which charts there are.

use std::path::Path;

use super::{
    Row,
    chart::{self, Bar, Line, Whose},
    table::{digits, time},
};
use crate::{
    Error,
    cli::Workload,
    implementation::Kind,
    run::{Measured, Results},
    worker::Flavour,
    workload::Figure,
};

/// Draws the charts of the workloads that were run.
pub(super) fn draw_all(results: &[Results<'_>], directory: &Path) -> Result<(), Error> {
    for results in results {
        let file = |name: &str| directory.join(format!("{name}.svg"));
        let workload = results.plan.workload;
        let svg = file(workload.name());
        match workload {
            Workload::Uncontended => chart::bars(
                &svg,
                "One acquire and release, nobody else about",
                "median of the rounds, on a runtime of one thread",
                &bars(results, by_figure, |measured| {
                    measured.case.flavour == Flavour::CurrentThread && sends(measured)
                }),
                time,
            )?,
            Workload::Seckill => {
                let title = format!("Seckill: {} at once on two keys", results.plan.size);
                crowd(results, &title, &svg, &file("seckill-commands"))?;
            }
            Workload::Processes => {
                let title = format!("{} at once on one key", results.plan.size);
                crowd(results, &title, &svg, &file("processes-commands"))?;
            }
            Workload::HandOff => chart::bars(
                &svg,
                "From the release in one process to the section in the other",
                "median",
                &bars(results, by_figure, all),
                time,
            )?,
            Workload::ForeignHolder => chart::bars(
                &svg,
                "From a foreign program's release to our section",
                "median",
                &bars(results, by_figure, all),
                time,
            )?,
            Workload::Scaling => chart::lines(
                &svg,
                &format!("{} at once on one key, from 1 to 64 processes", results.plan.size),
                "time until all are through",
                "processes",
                &lines(results),
                time,
            )?,
            Workload::IdleKeys | Workload::Leases | Workload::Burst => {}
        }
    }
    Ok(())
}

/// The files of a workload's charts, with what they show.
pub(super) fn of(workload: Workload) -> &'static [(&'static str, &'static str)] {
    match workload {
        Workload::Uncontended => &[("uncontended", "The time of an acquire and release")],
        Workload::Seckill => &[
            ("seckill", "The time until all callers are through"),
            ("seckill-commands", "The commands sent for each acquisition"),
        ],
        Workload::HandOff => &[("hand-off", "The time of a hand-off between two processes")],
        Workload::Processes => &[
            ("processes", "The time until the callers of four processes are through"),
            ("processes-commands", "The commands sent for each acquisition"),
        ],
        Workload::Scaling => &[("scaling", "The time over the number of processes")],
        Workload::ForeignHolder => {
            &[("foreign-holder", "The time from the release to the section")]
        }
        Workload::IdleKeys | Workload::Leases | Workload::Burst => &[],
    }
}

fn crowd(results: &Results<'_>, title: &str, walls: &Path, commands: &Path) -> Result<(), Error> {
    let subtitle = "time until all are through, median of the rounds";
    chart::bars(walls, title, subtitle, &bars(results, by_figure, all), time)?;
    let subtitle = "commands that clients sent, for each acquisition";
    chart::bars(commands, title, subtitle, &bars(results, by_commands, sends), digits)
}

/// In memory nothing is sent, which has no place beside the others on a scale.
fn sends(measured: &Measured) -> bool {
    measured.case.kind != Kind::InMemory
}

fn all(_: &Measured) -> bool {
    true
}

fn by_figure(row: &Row) -> (f64, String) {
    (row.figure_us, time(row.figure_us))
}

fn by_commands(row: &Row) -> (f64, String) {
    (row.commands_per_acquisition, digits(row.commands_per_acquisition))
}

/// The shortest first. Those with errors did not do what they are compared by, and come last.
fn bars(
    results: &Results<'_>,
    value: fn(&Row) -> (f64, String),
    wanted: impl Fn(&Measured) -> bool,
) -> Vec<Bar> {
    let mut bars: Vec<Bar> = results
        .cases
        .iter()
        .filter(|measured| wanted(measured))
        .map(|measured| {
            let row = Row::new(results.plan.workload.name(), measured);
            let (value, text) = value(&row);
            let failed = row.errors > 0;
            let text = if failed { format!("{text}, with errors") } else { text };
            Bar { label: label(measured), value, text, whose: whose(measured), failed }
        })
        .filter(|bar| bar.value.is_finite() && bar.value > 0.0)
        .collect();
    bars.sort_by(|left, right| {
        left.failed.cmp(&right.failed).then(left.value.total_cmp(&right.value))
    });
    bars
}

/// One line for each implementation, over the number of processes.
fn lines(results: &Results<'_>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for measured in &results.cases {
        let row = Row::new(results.plan.workload.name(), measured);
        let point = (measured.case.tasks.len() as f64, row.figure_us);
        let label = label(measured);
        match lines.iter_mut().find(|line| line.label == label) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { label, points: vec![point], whose: whose(measured) }),
        }
    }
    lines
}

fn label(measured: &Measured) -> String {
    let (kind, alone) = (measured.case.kind, measured.case.figure == Figure::Cycle);
    match kind.settings() {
        settings if settings.is_empty() || alone => kind.name().to_owned(),
        settings => format!("{}, {settings}", kind.name()),
    }
}

fn whose(measured: &Measured) -> Whose {
    match measured.case.kind {
        kind if kind.is_ours() => Whose::Ours,
        kind if kind.is_peer() => Whose::Peer,
        _ => Whose::ByHand,
    }
}
