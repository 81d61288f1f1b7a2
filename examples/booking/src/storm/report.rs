use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::audit::Owners;
use super::clients::{Booker, Operation, Slots};
use crate::cli::StormOptions;

/// What came of a storm.
#[derive(Debug)]
pub struct Report {
    replicas: u16,
    clients: u16,
    slots: u16,
    seconds: u16,
    race: Duration,
    /// Slots that somebody got in the race.
    won: BTreeSet<usize>,
    answers: BTreeMap<(Operation, u16), Histogram<u64>>,
    /// What must not be.
    pub faults: Vec<String>,
}

impl Report {
    pub(super) fn new(storm: &StormOptions, race: Duration) -> Self {
        let StormOptions { replicas, clients, slots, seconds } = *storm;
        let (answers, faults) = (BTreeMap::new(), Vec::new());
        Self { replicas, clients, slots, seconds, race, won: BTreeSet::new(), answers, faults }
    }

    pub(super) fn add(&mut self, booker: &Booker) {
        self.won.extend(booker.won);
        for (operation, status, took) in &booker.answers {
            let all = self.answers.entry((*operation, *status)).or_insert_with(microseconds);
            all.saturating_record(*took);
        }
    }

    /// Compares what clients were told with what is.
    pub(super) fn audit(&mut self, slots: &Slots, found: &Owners) {
        self.faults.extend(slots.double());
        let wanted =
            usize::from(self.slots).min(usize::from(self.clients) * usize::from(self.replicas));
        if self.won.len() < wanted {
            let left = wanted - self.won.len();
            self.faults.push(format!("{left} slots were left, though somebody wanted each"));
        }
        for (id, told, open) in slots.told() {
            let owners = found.get(&id).map_or(&[][..], Vec::as_slice);
            if owners.len() > 1 {
                self.faults.push(format!("{id} has {} owners", owners.len()));
            } else if owners.first().copied() != told && !open {
                let told = told.map_or("nobody".to_owned(), |user| user.to_string());
                let owner = owners.first().map_or("nobody".to_owned(), ToString::to_string);
                self.faults.push(format!("{id}: {told} was told to have it, and {owner} has"));
            }
        }
    }

    /// How many answers of this status the race had.
    #[must_use]
    pub fn race_answers(&self, status: u16) -> u64 {
        self.answers.get(&(Operation::Race, status)).map_or(0, Histogram::len)
    }

    /// The report as a table, and the verdict.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{} replicas x {} clients on {} slots: race over in {:.2?}",
            self.replicas, self.clients, self.slots, self.race
        );
        if self.seconds > 0 {
            let steady = self.answers.iter().filter(|((of, _), _)| *of != Operation::Race);
            let count: u64 = steady.map(|(_, all)| all.len()).sum();
            let each = count / u64::from(self.seconds);
            let _ =
                writeln!(text, "then {} s of listing, booking, cancelling: {each}/s", self.seconds);
        }
        let _ = writeln!(
            text,
            "\n{:8} {:>6} {:>8} {:>10} {:>10} {:>10}",
            "", "status", "answers", "p50", "p99", "max"
        );
        for ((operation, status), took) in &self.answers {
            let operation = format!("{operation:?}").to_lowercase();
            let status = if *status == 0 { "none".to_owned() } else { status.to_string() };
            let [p50, p99, max] =
                [took.value_at_quantile(0.5), took.value_at_quantile(0.99), took.max()]
                    .map(|micros| format!("{:.2?}", Duration::from_micros(micros)));
            let _ = writeln!(
                text,
                "{operation:8} {status:>6} {:>8} {p50:>10} {p99:>10} {max:>10}",
                took.len()
            );
        }
        for fault in self.faults.iter().take(20) {
            let _ = writeln!(text, "FAULT: {fault}");
        }
        let verdict = if self.faults.is_empty() {
            "OK: every slot was booked, none by two, and each is had by whoever was told so last"
        } else {
            "FAILED"
        };
        let _ = writeln!(text, "\n{verdict}");
        text
    }
}

/// From a microsecond to ten minutes, with three digits.
fn microseconds() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3)
        .unwrap_or_else(|_| unreachable!("these are bounds that it takes"))
}
