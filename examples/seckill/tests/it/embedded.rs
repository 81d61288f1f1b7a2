//! Runs without any server.

use crate::command::{number, seckill};
use serde_json::Value;

#[test]
fn without_protection_more_is_sold_than_there_is() {
    let output = seckill(&["--mode", "naive", "--json"]);
    let report = output.json();
    let row = &report["modes"][0];
    assert!(number(row, "oversold") > 0, "{row}");
    assert!(number(row, "sold") > 600, "{row}");
    // It promises nothing, so it breaks nothing.
    assert_eq!((output.code, &report["ok"]), (Some(0), &Value::Bool(true)));
}

#[test]
fn with_protection_both_items_sell_out_and_no_more() {
    for mode in ["lock", "fenced", "atomic"] {
        let row = seckill(&["--mode", mode, "--json"]).sound_row();
        let numbers = ["sold", "left", "turned_away", "errors"].map(|name| number(&row, name));
        assert_eq!(numbers, [600, 0, 400, 0], "{mode}");
    }
}

#[test]
fn with_stock_for_everybody_everybody_buys() {
    for mode in ["lock", "fenced", "atomic"] {
        let row = seckill(&["--mode", mode, "--stock", "10000", "--json"]).sound_row();
        let numbers = ["sold", "left", "turned_away", "errors"].map(|name| number(&row, name));
        assert_eq!(numbers, [1000, 19_000, 0, 0], "{mode}");
    }
}

#[test]
fn without_thinking_time_the_unprotected_sale_still_races() {
    let output = seckill(&["--mode", "naive", "--think", "0ms", "--json"]);
    assert!(number(&output.json()["modes"][0], "oversold") > 0, "{output:?}");
}

/// Each item is counted in time that its own orders need, not those of all items.
#[test]
fn the_greatest_sale_is_counted_too() {
    let output = seckill(&[
        "--mode", "atomic", "--buyers", "100000", "--items", "10000", "--think", "0ms", "--json",
    ]);
    assert_eq!(number(&output.sound_row(), "sold"), 100_000);
}

#[test]
fn the_json_object_has_exactly_these_keys() {
    let output = seckill(&["--buyers", "20", "--stock", "4", "--json"]);
    let report = output.json();
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().expect("it is an object").keys().cloned().collect()
    };
    assert_eq!(keys(&report), ["modes", "ok"]);
    let modes = report["modes"].as_array().expect("it is an array");
    let names: Vec<_> = modes.iter().map(|mode| mode["mode"].as_str().unwrap_or("?")).collect();
    assert_eq!(names, ["naive", "lock", "fenced", "atomic"]);
    for mode in modes {
        assert_eq!(
            keys(mode),
            [
                "mode",
                "sold",
                "left",
                "oversold",
                "turned_away",
                "errors",
                "wall_ms",
                "throughput",
                "p50_ms",
                "p95_ms",
                "p99_ms",
                "max_ms",
                "redis_commands_per_purchase",
                "lost",
                "stall",
                "reasons",
                "local_hand_over_share",
                "processes",
            ]
        );
        let times = ["p50_ms", "p95_ms", "p99_ms", "max_ms"].map(|name| mode[name].as_f64());
        assert!(times.is_sorted() && times[0] > Some(0.0), "{mode}");
        assert!(mode["wall_ms"].as_f64() > Some(0.0), "{mode}");
        assert!(mode["throughput"].as_f64() > Some(0.0), "{mode}");
        assert_eq!(mode["redis_commands_per_purchase"], Value::Null);
        assert_eq!(mode["lost"], 0, "{mode}");
        assert_eq!(mode["stall"], Value::Null);
        assert_eq!(mode["reasons"], Value::Object(serde_json::Map::new()));
        // Ten buyers in line for each item: all but a few have the lock from the one before.
        let locked = mode["mode"] == "lock" || mode["mode"] == "fenced";
        assert_eq!(mode["local_hand_over_share"].as_f64() > Some(0.5), locked, "{mode}");
        assert_eq!(mode["processes"], Value::Null);
    }
}

#[test]
fn a_frozen_buyer_does_damage_under_the_lock_and_none_under_the_fence() {
    let output = seckill(&["--stall", "--json"]);
    let report = output.json();
    let row = |mode: &str| {
        let rows = report["modes"].as_array().expect("it is an array");
        rows.iter().find(|row| row["mode"] == mode).expect("the mode has run").clone()
    };
    assert!(number(&row("lock"), "oversold") > 0, "{report}");
    let fenced = row("fenced");
    assert_eq!(number(&fenced, "oversold"), 0, "{report}");
    assert_eq!(number(&fenced, "sold"), 600, "{report}");
    assert_eq!(number(&fenced, "errors"), 1, "the stale write is refused: {report}");
    let outcomes = ["naive", "lock", "fenced", "atomic"].map(|mode| row(mode)["stall"].clone());
    assert_eq!(outcomes, [Value::Null, "damage".into(), "refused".into(), Value::Null]);
    let reasons = fenced["reasons"].as_object().expect("it is an object");
    assert_eq!(reasons.values().collect::<Vec<_>>(), [1], "{report}");
    assert_eq!((output.code, &report["ok"]), (Some(0), &Value::Bool(true)), "{output:?}");
}

#[test]
fn the_report_says_what_it_ran_on_and_what_came_out() {
    let output = seckill(&["--stall", "--buyers", "100", "--stock", "30"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.stderr, "", "no progress bar away from a terminal");
    for part in [
        "Locks: in the memory of this process",
        "Inventory: in the memory of this process",
        "* expected",
        "Waits of fenced",
        "█",
        "fenced: one buyer slept through the end of its lease, and its late write was refused",
        "OK: an order for every piece sold in fenced, atomic; orders and stock disagree in \
         naive, lock, as expected.",
    ] {
        assert!(output.stdout.contains(part), "{part:?} is missing in:\n{}", output.stdout);
    }
    assert_eq!(output.stdout.matches("refused").count(), 1, "once is enough:\n{}", output.stdout);
}

#[test]
fn the_picture_is_drawn() {
    let directory = tempdir();
    let path = directory.join("waits.svg");
    let output = seckill(&["--buyers", "50", "--plot", path.to_str().expect("it is UTF-8")]);
    let svg = std::fs::read_to_string(&path).expect("it is written");
    std::fs::remove_dir_all(&directory).expect("it is ours");
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{svg}");
    for mode in ["naive", "lock", "fenced", "atomic"] {
        assert!(svg.contains(&format!(">{mode}</text>")), "{mode} is missing");
    }
    assert_eq!(svg.matches(">p95 ").count(), 4);
    assert_eq!(svg.matches(">local ").count(), 2, "lock and fenced: {svg}");
}

fn tempdir() -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("seckill-test-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("the temporary directory is writable");
    path
}
