//! What the report says of buyers who got no answer, and of those who came to their locks.

use std::time::Duration;

use cache_lock::{LockKey, LockManager, LockOptions};
use seckill::audit::Audit;
use seckill::buyers::{Answer, Outcome};
use seckill::cli::Mode;
use seckill::processes::{LockCounts, Process};
use seckill::report::{ModeReport, Report, Sale};
use seckill::shop::PurchaseError;
use serde_json::{Value, json};

/// A sale in which all bought but these.
fn report(failures: &[(&str, u32)], audit: Audit) -> Report {
    let failed = failures
        .iter()
        .flat_map(|(reason, times)| (0..*times).map(|_| Outcome::Failed((*reason).to_owned())));
    let outcomes = failed.chain(std::iter::repeat(Outcome::Bought));
    let answers: Vec<Answer> = (0..100)
        .zip(outcomes)
        .map(|(buyer, outcome)| Answer { buyer, wait_us: 1000, outcome })
        .collect();
    let sale =
        Sale { answers, wall: Duration::from_secs(1), commands: None, processes: Vec::new() };
    Report { modes: vec![ModeReport::new(Mode::Lock, 100, false, &sale, audit)] }
}

#[test]
fn the_verdict_names_the_gap_and_its_main_reason() {
    let gap = report(&[("gone", 3), ("late", 7)], Audit::default());
    let text = gap.text();
    let verdict = "INCOMPLETE: 10 of 100 buyers in lock got no answer (7 of them: late); \
                   an order for every piece sold in lock.\n";
    assert!(text.ends_with(verdict), "{text}");
    assert!(text.contains("lock: 7 x late.\nlock: 3 x gone.\n"), "{text}");
    assert!(gap.is_ok(), "nothing is oversold or lost");

    let damaged = report(&[("gone", 3)], Audit { oversold: 2, ..Audit::default() });
    let text = damaged.text();
    let verdict = "FAILED: lock oversold 2 and lost 0; 3 of 100 buyers in lock got no answer \
                   (gone).\n";
    assert!(text.ends_with(verdict), "{text}");
    assert!(!damaged.is_ok());
}

#[test]
fn rare_reasons_are_summed_up() {
    let reasons = [("a", 9), ("b", 8), ("c", 7), ("d", 6), ("e", 5), ("f", 2), ("g", 1)];
    let text = report(&reasons, Audit::default()).text();
    assert!(text.contains("lock: 5 x e.\nlock: and 3 others, for 2 more reasons.\n"), "{text}");
    assert!(!text.contains(" x f"), "{text}");
}

/// The error names the lock and how long it was waited for, and so differs from buyer to buyer.
#[tokio::test]
async fn buyers_with_the_same_fate_are_counted_together() {
    let locks = LockManager::in_memory();
    let options = LockOptions::default().timeout(Duration::from_millis(1));
    let mut reasons = Vec::new();
    for item in ["a", "b"] {
        let key = || LockKey::new("seckill").part(item);
        let _held = locks.acquire(key(), &options).await.expect("it is free");
        let error = locks.acquire(key(), &options).await.expect_err("it is held");
        reasons.push(PurchaseError::from(error).reason());
    }
    assert_eq!(reasons, ["no lock: others held it until the timeout"; 2]);
}

/// A sale of 4 pieces to 8 buyers of two processes, or of one.
fn sale(mode: Mode, locks: &[Option<LockCounts>]) -> Report {
    let answers: Vec<Answer> = (0..8)
        .map(|buyer| {
            let outcome = if buyer % 5 < 2 { Outcome::Bought } else { Outcome::SoldOut };
            Answer { buyer, wait_us: 1000, outcome }
        })
        .collect();
    let each = 8 / u32::try_from(locks.len()).expect("they are few");
    let processes = (0..)
        .zip(locks)
        .map(|(index, &locks)| Process::new(&(index * each..(index + 1) * each), &answers, locks))
        .collect();
    let sale = Sale { answers, wall: Duration::from_secs(1), commands: Some(6), processes };
    Report { modes: vec![ModeReport::new(mode, 8, false, &sale, Audit::default())] }
}

fn counts(acquired: u64, handed_over: u64) -> Option<LockCounts> {
    Some(LockCounts { acquired, handed_over })
}

/// The cells of the rows that begin with this one.
fn rows<'a>(text: &'a str, first: &str) -> Vec<Vec<&'a str>> {
    let cells = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    cells.filter(|cells| cells.first() == Some(&first)).collect()
}

#[test]
fn the_share_of_local_hand_overs_is_that_of_all_processes_together() {
    let report = sale(Mode::Fenced, &[counts(4, 3), counts(4, 1)]);
    let text = report.text();
    let [all, first, second] = &rows(&text, "fenced")[..] else { panic!("{text}") };
    assert!(all.ends_with(&["0.75", "50.0%"]), "{text}");
    assert_eq!(first[1..], ["1", "4", "2", "50.0%", "4", "3", "75.0%"], "{text}");
    assert_eq!(second[1..], ["2", "4", "2", "50.0%", "4", "1", "25.0%"], "{text}");
    let json: Value = serde_json::from_str(&report.json().expect("it has numbers")).expect("JSON");
    assert_eq!(json["modes"][0]["local_hand_over_share"], 0.5, "{json}");
    assert_eq!(
        json["modes"][0]["processes"],
        json!([
            { "buyers": 4, "bought": 2, "acquired": 4, "handed_over": 3 },
            { "buyers": 4, "bought": 2, "acquired": 4, "handed_over": 1 },
        ])
    );
}

#[test]
fn of_the_locks_of_a_process_that_died_nothing_is_said() {
    let report = sale(Mode::Lock, &[None, counts(5, 4)]);
    let text = report.text();
    let [all, dead, alive] = &rows(&text, "lock")[..] else { panic!("{text}") };
    assert_eq!(all.last(), Some(&"80.0%"), "{text}");
    assert_eq!(dead[1..], ["1", "4", "2", "50.0%", "-", "-", "-"], "{text}");
    assert_eq!(alive[1..], ["2", "4", "2", "50.0%", "5", "4", "80.0%"], "{text}");
    let json: Value = serde_json::from_str(&report.json().expect("it has numbers")).expect("JSON");
    let dead = &json["modes"][0]["processes"][0];
    assert_eq!(*dead, json!({ "buyers": 4, "bought": 2, "acquired": null, "handed_over": null }));
}

#[test]
fn there_are_no_shares_of_a_single_process_nor_without_locks() {
    for (mode, locks) in
        [(Mode::Lock, &[counts(8, 6)][..]), (Mode::Atomic, &[counts(0, 0), counts(0, 0)])]
    {
        let report = sale(mode, locks);
        let text = report.text();
        let row = &rows(&text, mode.name())[..];
        assert_eq!(row.len(), 1, "{text}");
        assert_eq!(row[0].last(), Some(&if mode.takes_lock() { "75.0%" } else { "-" }), "{text}");
        let json = report.json().expect("it has numbers");
        assert!(json.contains(r#""processes":null"#), "{json}");
    }
}
