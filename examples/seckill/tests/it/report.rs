//! What the report says of buyers who got no answer.

use std::time::Duration;

use cache_lock::{LockKey, LockManager, LockOptions};
use seckill::audit::Audit;
use seckill::buyers::{Answer, Outcome};
use seckill::cli::Mode;
use seckill::report::{ModeReport, Report};
use seckill::shop::PurchaseError;

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
    let wall = Duration::from_secs(1);
    let mode = ModeReport::new(Mode::Lock, 100, false, &answers, audit, wall, None);
    Report { modes: vec![mode] }
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
