//! Runs the plans: rounds, processes, and what came of them.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use test_support::RedisServer;

use crate::{
    Error,
    implementation::FOREIGN_RELEASE_RUNS,
    section::{Interval, overlaps},
    server::{Counters, Spent},
    task::Outcome,
    worker::{Job, Worker},
    workload::{Case, Figure, Plan},
};

/// A case and its runs.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) case: Case,
    pub(crate) samples: Vec<Sample>,
}

/// A workload's cases, in the plan's order.
#[derive(Debug)]
pub(crate) struct Results<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) cases: Vec<Measured>,
}

/// One run of a case.
#[derive(Debug)]
pub(crate) struct Sample {
    /// By which implementations are compared, in microseconds.
    pub(crate) figure_us: f64,
    pub(crate) wall_ms: f64,
    /// Sections that ran, or locks that were held.
    pub(crate) acquired: u64,
    /// Acquisitions that failed, sections that overlapped, and locks that were lost.
    pub(crate) errors: u64,
    pub(crate) first_error: Option<String>,
    /// In microseconds: from the request to the section, or the hand-offs.
    pub(crate) waits_us: Vec<f64>,
    pub(crate) spent: Spent,
    pub(crate) client_cpu_us: f64,
}

impl Sample {
    fn failed(error: String) -> Self {
        Self {
            figure_us: f64::NAN,
            wall_ms: f64::NAN,
            acquired: 0,
            errors: 1,
            first_error: Some(error),
            waits_us: Vec::new(),
            spent: Spent { sent: 0, ran: 0, cpu: Duration::ZERO },
            client_cpu_us: 0.0,
        }
    }
}

/// Runs all of it.
pub(crate) async fn all(plans: &[Plan]) -> Result<Vec<Results<'_>>, Error> {
    let steps = plans.iter().map(|plan| u64::from(plan.rounds) * plan.cases.len() as u64).sum();
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {elapsed} {msg:30!}")?;
    let bar = ProgressBar::new(steps).with_style(style);
    let mut results = Vec::new();
    let mut runs = 0;
    for plan in plans {
        let servers: Vec<RedisServer> = plan.servers.iter().map(|&keys| server(keys)).collect();
        let mut cases: Vec<Measured> = plan
            .cases
            .iter()
            .map(|case| Measured { case: case.clone(), samples: Vec::new() })
            .collect();
        let number = cases.len();
        for round in 0..plan.rounds as usize {
            // Another case begins in each round, so the order is no advantage.
            for turn in 0..number {
                let measured = &mut cases[(round * 7 + turn) % number];
                let case = &measured.case;
                bar.set_message(format!("{}: {}", plan.workload.name(), case.kind.name()));
                runs += 1;
                let server = &servers[case.server];
                if plan.servers[case.server] == 0 {
                    server.cli(&["FLUSHALL"]);
                }
                // One that fails altogether is no reason to lose all others.
                let sample = run(case, server, runs).await.unwrap_or_else(|error| {
                    let Case { kind, .. } = case;
                    let (name, workload) = (kind.name(), plan.workload.name());
                    bar.suspend(|| eprintln!("{workload}, {name}, {}: {error}", case.settings()));
                    Sample::failed(error.to_string())
                });
                measured.samples.push(sample);
                bar.inc(1);
            }
        }
        results.push(Results { plan, cases });
    }
    bar.finish_and_clear();
    Ok(results)
}

/// A server with that many records of others, which expire long after the run.
fn server(keys: u32) -> RedisServer {
    let server = RedisServer::start();
    const FILL: &str = "for i = ARGV[1], ARGV[2] do \
                        redis.call('SET', 'idle:' .. i, 'somebody', 'PX', 86400000) end";
    const CHUNK: u32 = 50_000;
    for first in (0..keys).step_by(CHUNK as usize) {
        let last = (first + CHUNK).min(keys) - 1;
        server.cli(&["EVAL", FILL, "0", &first.to_string(), &last.to_string()]);
    }
    server
}

async fn run(case: &Case, server: &RedisServer, run: u64) -> Result<Sample, Error> {
    let url = server.url();
    let mut workers = Vec::new();
    // A few at once: many processes that start together hold each other up.
    for tasks in case.tasks.chunks(8) {
        let mut starting = Vec::new();
        for task in tasks {
            let job = Job {
                kind: case.kind,
                flavour: case.flavour,
                url: url.clone(),
                run,
                task: task.clone(),
            };
            starting.push(tokio::spawn(async move { Worker::start(&job).await }));
        }
        for starting in starting {
            workers.push(starting.await??);
        }
    }
    let before = Counters::read(server);
    for worker in &mut workers {
        worker.begin().await?;
    }
    let mut outcomes = Vec::new();
    // One after the other: their reports wait in the pipes, which hold less than some of them, but
    // no measurement runs while a process writes its report.
    for worker in &mut workers {
        outcomes.push(worker.outcome().await?);
    }
    let sends_set = case.kind.sends_set();
    let mut spent = Counters::read(server).since(&before, sends_set);
    for outcome in &outcomes {
        without_foreign(&mut spent, outcome, sends_set);
    }
    Ok(sample(case.figure, outcomes, spent))
}

/// Takes away what a foreign program has sent.
fn without_foreign(spent: &mut Spent, outcome: &Outcome, sends_set: bool) {
    let Some(sets) = outcome.foreign_sets.map(u64::from) else { return };
    let releases = outcome.sections.len() as u64;
    spent.sent -= releases + if sends_set { sets } else { 0 };
    spent.ran -= sets + releases * FOREIGN_RELEASE_RUNS;
}

fn sample(figure: Figure, outcomes: Vec<Outcome>, spent: Spent) -> Sample {
    let started = outcomes.iter().map(|outcome| outcome.started).min().unwrap_or_default();
    let ended = outcomes.iter().map(|outcome| outcome.ended).max().unwrap_or_default();
    let wall_us = (ended - started) as f64 / 1e3;
    let mut sample = Sample {
        figure_us: wall_us,
        wall_ms: wall_us / 1e3,
        acquired: 0,
        errors: 0,
        first_error: None,
        waits_us: Vec::new(),
        spent,
        client_cpu_us: 0.0,
    };
    let mut sections = Vec::new();
    let mut turns = Vec::new();
    for (process, outcome) in outcomes.into_iter().enumerate() {
        let ours = outcome.foreign_sets.is_none();
        if ours {
            sample.acquired += outcome.sections.len() as u64 + u64::from(outcome.held);
            sample.client_cpu_us += outcome.cpu.as_secs_f64() * 1e6;
        }
        sample.errors += u64::from(outcome.failed) + u64::from(outcome.lost);
        sample.first_error = sample.first_error.or(outcome.first_error);
        sample.waits_us.extend(outcome.waits.iter().map(|&wait| wait as f64 / 1e3));
        turns.extend(outcome.sections.iter().map(|(_, interval)| (process, *interval)));
        sections.extend(outcome.sections);
    }
    sample.errors += u64::from(overlaps(sections));
    match figure {
        Figure::Cycle => sample.figure_us = wall_us / sample.acquired.max(1) as f64,
        Figure::Wall | Figure::Held => {}
        Figure::HandOff | Figure::HandOffToSecond => {
            sample.waits_us = hand_offs(turns, figure == Figure::HandOffToSecond);
            sample.figure_us = median(&sample.waits_us);
        }
    }
    sample
}

/// From the end of one process's section, where it begins to release, to the start of the other
/// one's, in microseconds.
fn hand_offs(mut turns: Vec<(usize, Interval)>, to_second_only: bool) -> Vec<f64> {
    turns.sort_by_key(|(_, interval)| interval.start);
    turns
        .windows(2)
        .filter(|pair| pair[0].0 != pair[1].0 && (!to_second_only || pair[1].0 == 1))
        // Where sections overlap, nothing was handed over.
        .filter_map(|pair| pair[1].1.start.checked_sub(pair[0].1.end))
        .map(|time| time as f64 / 1e3)
        .collect()
}

/// The median; of an even number, the mean of the two in the middle. What failed has no value.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[length / 2],
        length => f64::midpoint(sorted[length / 2 - 1], sorted[length / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_offs_go_from_one_process_to_the_other() {
        let turn = |process, start, end| (process, Interval { start, end });
        let turns = vec![
            turn(1, 9_000, 9_500),
            turn(0, 1_000, 5_000),
            turn(0, 10_500, 13_000),
            turn(1, 12_000, 13_000),
        ];
        assert_eq!(hand_offs(turns.clone(), false), [4.0, 1.0]);
        assert_eq!(hand_offs(turns, true), [4.0]);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[3.0, f64::NAN, 1.0, 2.0]), 2.0);
        assert!(median(&[]).is_nan());
    }
}
