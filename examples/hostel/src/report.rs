//! What a run shows.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use crate::audit::{Audit, money};
use crate::settle::Settled;

/// Violations that are shown in full; the rest is counted.
const SHOWN: usize = 20;

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The run's seed.
    pub seed: u64,
    /// From the opening of the doors to the last answer, in milliseconds.
    pub wall_ms: u64,
    /// Visits of students; some come twice.
    pub visits: u64,
    /// What came of their calls, and how often.
    pub calls: BTreeMap<String, u64>,
    /// Students that were removed while they were at the door.
    pub expelled: u64,
    /// Processes that were killed.
    pub killed: u64,
    /// Visits that were begun again, since their process had died.
    pub begun_again: u64,
    /// Payments that were settled before the doors opened.
    pub recovered_before: Settled,
    /// Payments that processes settled when they started.
    pub recovered_meanwhile: Settled,
    /// Payments that were settled after the last answer.
    pub recovered_after: Settled,
    /// What is there now, and what of it cannot be right.
    pub audit: Audit,
}

impl Report {
    /// Whether every rule holds.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.audit.violations.is_empty()
    }

    /// A line, for one of many runs.
    #[must_use]
    pub fn line(&self) -> String {
        let Audit { beds, taken, captured, refunded, .. } = &self.audit;
        let mut line = format!(
            "{:>5} ms  {:>5} calls  {taken:>4} of {beds} beds  {:>9} captured  {refunded:>4} refunded",
            self.wall_ms,
            self.calls.values().sum::<u64>(),
            money(*captured),
        );
        let recovered = self.recovered();
        let _ = write!(line, "  {:>3} recovered", recovered.captured + recovered.refunded);
        if self.killed > 0 {
            let _ = write!(line, "  {:>2} killed", self.killed);
        }
        line.push_str(if self.is_ok() { "  ok\n" } else { "  FAILED\n" });
        line
    }

    /// The whole of it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let Self { visits, wall_ms, expelled, killed, begun_again, .. } = self;
        let _ = writeln!(text, "{:<10} {visits} in {:.2} s", "visits", *wall_ms as f64 / 1000.0);
        let mut calls: Vec<_> = self.calls.iter().collect();
        calls.sort_by_key(|(label, count)| (std::cmp::Reverse(**count), label.as_str()));
        for (index, (label, count)) in calls.into_iter().enumerate() {
            let _ =
                writeln!(text, "{:<10} {count:>6}  {label}", if index == 0 { "calls" } else { "" });
        }
        if *expelled > 0 {
            let _ = writeln!(
                text,
                "{:<10} {expelled} students, while they were at the door",
                "expelled"
            );
        }
        if *killed > 0 {
            let _ = writeln!(
                text,
                "{:<10} {killed} processes; {begun_again} visits were begun again",
                "killed"
            );
        }
        for (when, settled) in [
            ("before", self.recovered_before),
            ("by processes that started", self.recovered_meanwhile),
            ("in the end", self.recovered_after),
        ] {
            let Settled { captured, refunded } = settled;
            if settled != Settled::default() {
                let _ = writeln!(
                    text,
                    "{:<10} {captured} payments captured, {refunded} refunded, {when}",
                    "recovered"
                );
            }
        }
        text + &audit_text(&self.audit)
    }

    fn recovered(&self) -> Settled {
        let mut sum = self.recovered_before;
        sum += self.recovered_meanwhile;
        sum += self.recovered_after;
        sum
    }
}

/// What is there, and the verdict.
#[must_use]
pub fn audit_text(audit: &Audit) -> String {
    let Audit { rooms, beds, taken, full_rooms, price, captured, banked, refunded, violations } =
        audit;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:<10} {taken} of {beds} taken, {full_rooms} of {rooms} rooms full",
        "beds"
    );
    let _ = writeln!(
        text,
        "{:<10} {} for these beds, {} captured, {} by the provider's books; {refunded} payments refunded",
        "money",
        money(*price),
        money(*captured),
        money(*banked)
    );
    if violations.is_empty() {
        text.push_str("\nOK: rooms, students, payments and the provider's books agree.\n");
        return text;
    }
    text.push('\n');
    for violation in violations.iter().take(SHOWN) {
        let _ = writeln!(text, "- {violation}");
    }
    if violations.len() > SHOWN {
        let _ = writeln!(text, "- and {} more", violations.len() - SHOWN);
    }
    let _ = writeln!(text, "FAILED: {} rules do not hold.", violations.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(violations: usize) -> Report {
        Report {
            visits: 3,
            wall_ms: 1234,
            calls: BTreeMap::from([("room full".to_owned(), 1), ("reserved".to_owned(), 2)]),
            killed: 2,
            begun_again: 5,
            recovered_after: Settled { captured: 1, refunded: 2 },
            audit: Audit {
                rooms: 2,
                beds: 4,
                taken: 2,
                full_rooms: 1,
                price: 1805,
                captured: 1805,
                banked: 1805,
                refunded: 1,
                violations: vec!["something".to_owned(); violations],
            },
            ..Report::default()
        }
    }

    #[test]
    fn what_is_sound_reads_well() {
        let expected = "\
visits     3 in 1.23 s
calls           2  reserved
                1  room full
killed     2 processes; 5 visits were begun again
recovered  1 payments captured, 2 refunded, in the end
beds       2 of 4 taken, 1 of 2 rooms full
money      18.05 for these beds, 18.05 captured, 18.05 by the provider's books; 1 payments refunded

OK: rooms, students, payments and the provider's books agree.
";
        assert_eq!(report(0).text(), expected);
        assert!(
            report(0).line().ends_with("    3 recovered   2 killed  ok\n"),
            "{}",
            report(0).line()
        );
    }

    #[test]
    fn what_is_not_is_named() {
        let text = report(22).text();
        assert_eq!(text.matches("- something\n").count(), SHOWN, "{text}");
        assert!(text.ends_with("- and 2 more\nFAILED: 22 rules do not hold.\n"), "{text}");
        assert!(report(1).line().ends_with("FAILED\n"));
    }
}
