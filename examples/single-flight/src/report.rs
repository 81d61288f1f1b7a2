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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::database::Attempt;

    fn attempt(number: i64, process: u32, outcome: Outcome) -> Attempt {
        Attempt { number, process, token: number, outcome }
    }

    fn served(errors: &[&str]) -> Served {
        let errors = errors.iter().map(|error| (*error).to_owned()).collect();
        Served { wait_us: 1000, errors, ok: true }
    }

    /// What is wrong with a start of two processes of one task each, of which the first fails once.
    fn wrong(change: impl FnOnce(&mut ByProcess, &mut Tally), arguments: &[&str]) -> Vec<String> {
        let arguments =
            ["single-flight", "--processes=2", "--tasks=1", "--failures=1"].iter().chain(arguments);
        let options = Options::try_parse_from(arguments).expect("they are arguments");
        let mut by_process = vec![Some(vec![served(&["failed"])]), Some(vec![served(&[])])];
        let mut tally = Tally {
            pools: vec![2, 1],
            attempts: vec![attempt(1, 1, Outcome::Failed), attempt(2, 2, Outcome::Migrated)],
            bookings: 2,
            version: TARGET,
        };
        change(&mut by_process, &mut tally);
        Report::new(&options, &by_process, Duration::from_secs(1), None, tally).wrong
    }

    #[test]
    fn all_that_can_be_wrong_is_noticed() {
        assert_eq!(wrong(|_, _| {}, &[]), [""; 0]);
        for (said, change) in [
            ("pools of process 2: 2", (|_, tally| tally.pools.push(2)) as fn(&mut _, &mut Tally)),
            ("pools of process 1: 0", |_, tally| tally.pools.truncate(1)),
            ("migrations: 2", |_, tally| tally.attempts.push(attempt(3, 1, Outcome::Migrated))),
            ("nothing to do: 1", |_, tally| {
                tally.attempts.push(attempt(3, 1, Outcome::NothingToDo));
            }),
            ("did not end: 1", |_, tally| tally.attempts.push(attempt(3, 1, Outcome::Begun))),
            ("failed: 2", |_, tally| tally.attempts.push(attempt(3, 1, Outcome::Failed))),
            ("bookings: 1", |_, tally| tally.bookings = 1),
            ("version of the schema: 2", |_, tally| tally.version = 2),
            ("errors that tasks met: 2", |by_process: &mut ByProcess, _| {
                by_process[1] = Some(vec![served(&["failed"])]);
            }),
            ("tasks of process 1 that were served: 0", |by_process, tally| {
                by_process[0] = Some(vec![Served { ok: false, ..served(&["failed"]) }]);
                tally.bookings = 1;
            }),
            ("killed: 1", |by_process, tally| {
                by_process[1] = None;
                tally.bookings = 1;
            }),
        ] {
            let wrong = wrong(change, &[]);
            assert!(wrong.iter().any(|one| one.contains(said)), "{said}: {wrong:?}");
        }
    }

    #[test]
    fn a_process_that_was_killed_tells_nothing() {
        let killed = |by_process: &mut ByProcess, tally: &mut Tally| {
            by_process[0] = None;
            tally.attempts.insert(1, attempt(3, 1, Outcome::Begun));
            tally.bookings = 1;
        };
        assert_eq!(wrong(killed, &["--kill"]), [""; 0]);
        assert_eq!(wrong(|_, _| {}, &["--kill"]), ["processes that were killed: 0, and not 1"]);
    }
}
