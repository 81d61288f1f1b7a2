//! What came of a start, and whether that is as it should be.

use std::fmt::Write as _;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::Error;
use crate::cli::Options;
use crate::database::{Outcome, TARGET, Tally};
use crate::fleet::ByProcess;
use crate::tasks::Served;

/// What came of a start.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// In the order of the processes.
    pub processes: Vec<ProcessReport>,
    /// Of the tasks of all of them.
    pub waits: Waits,
    /// From the opening to the last answer, in milliseconds.
    pub wall_ms: f64,
    /// How many scripts Redis has run for it.
    pub scripts: Option<u64>,
    /// What the database holds.
    pub tally: Tally,
    /// What is not as it should be.
    pub wrong: Vec<String>,
}

/// What the tasks of one process met.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ProcessReport {
    /// It was killed.
    pub killed: bool,
    /// Its pools.
    pub pools: usize,
    /// Its tasks that were served.
    pub served: usize,
    /// The errors that they met on the way.
    pub errors: Vec<String>,
    /// Their waits.
    pub waits: Option<Waits>,
}

/// How long tasks waited, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Waits {
    /// Half of them no longer than this.
    pub p50: f64,
    /// All but one in a hundred.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Waits {
    fn of<'a>(served: impl IntoIterator<Item = &'a Served>) -> Self {
        // Three digits, and the range grows as needed.
        let mut waits =
            Histogram::<u64>::new(3).expect("three significant digits are a valid precision");
        for one in served {
            waits += one.wait_us;
        }
        let ms = |quantile| waits.value_at_quantile(quantile) as f64 / 1e3;
        Self { p50: ms(0.5), p99: ms(0.99), max: ms(1.0) }
    }
}

impl Report {
    pub(crate) fn new(
        options: &Options,
        served: &ByProcess,
        wall: Duration,
        scripts: Option<u64>,
        tally: Tally,
    ) -> Self {
        let processes = (1..).zip(served).map(|(number, served)| {
            let pools = tally.pools.iter().filter(|process| **process == number).count();
            let Some(served) = served else {
                return ProcessReport { killed: true, pools, ..ProcessReport::default() };
            };
            ProcessReport {
                killed: false,
                pools,
                served: served.iter().filter(|one| one.ok).count(),
                errors: served.iter().flat_map(|one| one.errors.clone()).collect(),
                waits: Some(Waits::of(served)),
            }
        });
        let processes = processes.collect();
        let waits = Waits::of(served.iter().flatten().flatten());
        let wall_ms = wall.as_secs_f64() * 1e3;
        let mut report = Self { processes, waits, wall_ms, scripts, tally, wrong: Vec::new() };
        report.wrong = report.check(options);
        report
    }

    /// Compares what is there with what should be.
    fn check(&self, options: &Options) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut expect = |what: &str, is: usize, should_be: usize| {
            if is != should_be {
                wrong.push(format!("{what}: {is}, and not {should_be}"));
            }
        };
        let (failures, tasks) = (options.failures as usize, options.tasks as usize);
        let killed = self.processes.iter().filter(|process| process.killed).count();
        expect("processes that were killed", killed, usize::from(options.kill));
        for (number, process) in (1..).zip(&self.processes) {
            expect(&format!("pools of process {number}"), process.pools, 1);
            let should_be = if process.killed { 0 } else { tasks };
            expect(
                &format!("tasks of process {number} that were served"),
                process.served,
                should_be,
            );
        }
        let ended =
            |outcome| self.tally.attempts.iter().filter(|one| one.outcome == outcome).count();
        expect("attempts that failed", ended(Outcome::Failed), failures);
        expect("migrations", ended(Outcome::Migrated), 1);
        expect("attempts that had nothing to do", ended(Outcome::NothingToDo), 0);
        expect("attempts that did not end", ended(Outcome::Begun), killed);
        let version = usize::try_from(self.tally.version).unwrap_or_default();
        expect("the version of the schema", version, usize::try_from(TARGET).unwrap_or_default());
        let served: usize = self.processes.iter().map(|process| process.served).sum();
        let bookings = usize::try_from(self.tally.bookings).unwrap_or(usize::MAX);
        expect("bookings", bookings, served);
        // Those of a process that was killed have told nobody.
        let errors: usize = self.processes.iter().map(|process| process.errors.len()).sum();
        let of_the_killed = self
            .tally
            .attempts
            .iter()
            .filter(|one| one.outcome == Outcome::Failed)
            .filter(|one| self.processes.get(one.process as usize - 1).is_some_and(|p| p.killed))
            .count();
        expect("errors that tasks met", errors + of_the_killed, failures);
        wrong
    }

    /// Whether all is as it should be.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.wrong.is_empty()
    }

    /// As one JSON object.
    ///
    /// # Errors
    /// None that is known.
    pub fn json(&self) -> Result<String, Error> {
        let mut object = serde_json::to_value(self)?;
        object["ok"] = self.is_ok().into();
        Ok(object.to_string())
    }

    /// As a table.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "process  pools  served  errors       p50       p99       max")?;
        for (number, process) in (1..).zip(&self.processes) {
            let ProcessReport { killed, pools, served, errors, waits } = process;
            write!(text, "{number:>7}  {pools:>5}  ")?;
            match waits {
                Some(waits) if !killed => {
                    writeln!(text, "{served:>6}  {:>6}  {}", errors.len(), columns(*waits))?;
                }
                _ => writeln!(text, "killed")?,
            }
        }
        let sum = |of: fn(&ProcessReport) -> usize| self.processes.iter().map(of).sum::<usize>();
        let (pools, served) = (sum(|p| p.pools), sum(|p| p.served));
        let errors = sum(|p| p.errors.len());
        let waits = columns(self.waits);
        writeln!(text, "  fleet  {pools:>5}  {served:>6}  {errors:>6}  {waits}\n")?;

        writeln!(text, "attempt  process             token  outcome")?;
        for attempt in &self.tally.attempts {
            let outcome = match attempt.outcome {
                Outcome::Begun => "did not end: its process was killed",
                Outcome::Failed => "failed",
                Outcome::Migrated => "migrated",
                Outcome::NothingToDo => "nothing to do",
            };
            let (number, process, token) = (attempt.number, attempt.process, attempt.token);
            writeln!(text, "{number:>7}  {process:>7}  {token:>16}  {outcome}")?;
        }
        write!(text, "\nAll of it took {:.0} ms", self.wall_ms)?;
        match self.scripts {
            Some(scripts) => writeln!(text, " and {scripts} scripts on Redis.")?,
            None => writeln!(text, ".")?,
        }
        match &self.wrong[..] {
            [] => writeln!(text, "OK"),
            wrong => writeln!(text, "WRONG: {}", wrong.join("; ")),
        }
    }
}

fn columns(waits: Waits) -> String {
    let Waits { p50, p99, max } = waits;
    format!("{p50:>6.0} ms {p99:>6.0} ms {max:>6.0} ms")
}
