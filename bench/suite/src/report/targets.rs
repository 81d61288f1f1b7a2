//! The targets, and what this run has to say to each.

use super::{
    Row,
    table::{Table, digits, time},
};
use crate::{
    cli::Workload,
    implementation::Kind,
    run::{Measured, Results, median},
    worker::Flavour,
};

/// What was aimed at.
#[derive(Debug)]
pub(super) struct Target {
    workload: Workload,
    what: String,
    limit: f64,
    measured: f64,
    /// What the ratio is one of, in times.
    of: String,
}

const AWAITED: Kind = Kind::CacheLock { background: false };
const BACKGROUND: Kind = Kind::CacheLock { background: true };

/// Those whose workloads were run.
pub(super) fn all(results: &[Results<'_>]) -> Vec<Target> {
    let mut targets = Vec::new();
    for results in results {
        match results.plan.workload {
            Workload::Uncontended => uncontended(results, &mut targets),
            Workload::Seckill => contended(results, 20.0, 0.05, &mut targets),
            Workload::Processes => contended(results, 10.0, 0.1, &mut targets),
            Workload::HandOff => hand_off(results, &mut targets),
            Workload::IdleKeys => idle_keys(results, &mut targets),
            Workload::Burst => burst(results, &mut targets),
            Workload::Scaling | Workload::Leases | Workload::ForeignHolder => {}
        }
    }
    targets
}

pub(super) fn table(targets: &[Target]) -> Table {
    let heads = ["workload", "what", "target", "measured", "", "of"];
    let mut table = vec![heads.map(str::to_owned).to_vec()];
    for target in targets {
        let met = if target.measured <= target.limit { "met" } else { "**not met**" };
        table.push(vec![
            target.workload.name().to_owned(),
            target.what.clone(),
            format!("<= {}", digits(target.limit)),
            digits(target.measured),
            met.to_owned(),
            target.of.clone(),
        ]);
    }
    table
}

fn uncontended(results: &Results<'_>, targets: &mut Vec<Target>) {
    for flavour in [Flavour::CurrentThread, Flavour::MultiThread] {
        let of = |wanted: fn(&Kind) -> bool| {
            find(results, |case| wanted(&case.case.kind) && case.case.flavour == flavour)
        };
        let raw = of(|kind| matches!(kind, Kind::Raw { .. }));
        let parts = [
            (of(|kind| *kind == AWAITED), 1.05, "cache-lock / raw"),
            (of(|kind| *kind == BACKGROUND), 0.6, "background release / raw"),
        ];
        for (ours, limit, what) in parts {
            let what = format!("{what}, {}", flavour.name());
            push_ratio(results, targets, what, limit, ours, raw);
        }
    }
}

fn contended(results: &Results<'_>, times: f64, commands: f64, targets: &mut Vec<Target>) {
    let workload = results.plan.workload;
    let Some(ours) = find(results, |case| case.case.kind == AWAITED) else { return };
    let peer = best_peer(results);
    let name = peer.map(|peer| {
        format!(
            "cache-lock / {}, {}, the fastest peer",
            peer.case.kind.name(),
            peer.case.settings()
        )
    });
    push_ratio(results, targets, name.unwrap_or_default(), 1.0 / times, Some(ours), peer);
    let row = Row::new(workload.name(), ours);
    let mut push = |what: &str, limit, measured| {
        let of = String::new();
        targets.push(Target { workload, what: what.to_owned(), limit, measured, of });
    };
    push("cache-lock: commands sent for each acquisition", commands, row.commands_per_acquisition);
    push("cache-lock: errors", 0.0, row.errors as f64);
}

fn hand_off(results: &Results<'_>, targets: &mut Vec<Target>) {
    let ours = find(results, |case| case.case.kind == AWAITED);
    let floor = find(results, |case| case.case.kind == Kind::DirectGrant { raise: true });
    push_ratio(results, targets, "cache-lock / direct grant by hand".to_owned(), 1.3, ours, floor);
}

fn idle_keys(results: &Results<'_>, targets: &mut Vec<Target>) {
    let on = |server| find(results, |case| case.case.kind == AWAITED && case.case.server == server);
    for (server, keys) in results.plan.servers.iter().enumerate().skip(1) {
        let what = format!("cache-lock with {keys} idle keys / without");
        push_ratio(results, targets, what, 1.05, on(server), on(0));
    }
}

fn burst(results: &Results<'_>, targets: &mut Vec<Target>) {
    for raw in results.cases.iter().filter(|case| matches!(case.case.kind, Kind::Raw { .. })) {
        let variant = &raw.case.variant;
        let ours = find(results, |case| case.case.kind == AWAITED && case.case.variant == *variant);
        push_ratio(results, targets, format!("cache-lock / raw, {variant}"), 3.0, ours, Some(raw));
    }
}

/// The fastest setting of a peer that made no error.
fn best_peer<'a>(results: &'a Results<'_>) -> Option<&'a Measured> {
    let figure = |measured: &Measured| {
        median(&measured.samples.iter().map(|sample| sample.figure_us).collect::<Vec<_>>())
    };
    results
        .cases
        .iter()
        .filter(|measured| measured.case.kind.is_peer())
        .filter(|measured| measured.samples.iter().all(|sample| sample.errors == 0))
        .min_by(|left, right| figure(left).total_cmp(&figure(right)))
}

fn find<'a>(results: &'a Results<'_>, wanted: impl Fn(&Measured) -> bool) -> Option<&'a Measured> {
    results.cases.iter().find(|measured| wanted(measured))
}

/// The ratio is the median of those of the rounds: what was noisy in a round was so for both.
fn push_ratio(
    results: &Results<'_>,
    targets: &mut Vec<Target>,
    what: String,
    limit: f64,
    ours: Option<&Measured>,
    other: Option<&Measured>,
) {
    let (Some(ours), Some(other)) = (ours, other) else { return };
    let rounds = ours.samples.iter().zip(&other.samples);
    let ratios: Vec<f64> = rounds.map(|(ours, other)| ours.figure_us / other.figure_us).collect();
    let workload = results.plan.workload;
    let [ours, other] = [ours, other].map(|case| time(Row::new(workload.name(), case).figure_us));
    let measured = median(&ratios);
    targets.push(Target { workload, what, limit, measured, of: format!("{ours} / {other}") });
}
