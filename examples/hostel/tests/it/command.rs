//! Runs the command as a user does.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// No run of these tests takes nearly as long.
const HANG: Duration = Duration::from_secs(240);

/// What a run of the command left behind.
#[derive(Debug)]
pub(crate) struct Output {
    /// The exit code.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

/// Ends with the test, however that ends.
#[derive(Debug)]
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `hostel` with these arguments and with no servers but those they name.
pub(crate) fn start(arguments: &[&str]) -> Running {
    let child = Command::new(env!("CARGO_BIN_EXE_hostel"))
        .args(arguments)
        .env_remove("REDIS_URL")
        .env_remove("MONGODB_URI")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    Running(child.expect("the command starts"))
}

/// Runs `hostel` with these arguments and with no servers but those they name.
pub(crate) fn hostel(arguments: &[&str]) -> Output {
    start(arguments).finish()
}

impl Running {
    /// Waits until it ends.
    pub(crate) fn finish(mut self) -> Output {
        let stdout = reader(self.0.stdout.take().expect("it is a pipe"));
        let stderr = reader(self.0.stderr.take().expect("it is a pipe"));
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.0.try_wait().expect("it is our child") {
                break status;
            }
            assert!(started.elapsed() < HANG, "hostel hangs");
            std::thread::sleep(Duration::from_millis(10));
        };
        let text = |reader: std::thread::JoinHandle<String>| reader.join().expect("it is UTF-8");
        Output { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }
}

fn reader(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).expect("it is UTF-8");
        text
    })
}

impl Output {
    /// The reports of runs with `--json`, if all is as it must be.
    #[track_caller]
    pub(crate) fn sound(&self) -> Vec<Value> {
        assert_eq!(self.code, Some(0), "{self:?}");
        let report = |line| {
            let report: Value = serde_json::from_str(line).expect("it is JSON");
            let audit = &report["audit"];
            assert_eq!(audit["violations"], Value::Array(Vec::new()), "{self:?}");
            assert_eq!(audit["captured"], audit["price"], "{self:?}");
            report
        };
        self.stdout.lines().map(report).collect()
    }
}

/// The number under `name`.
#[track_caller]
pub(crate) fn number(value: &Value, name: &str) -> i64 {
    value[name].as_i64().unwrap_or_else(|| panic!("{name} is no integer in {value}"))
}

#[test]
fn everything_goes_well_without_chaos() {
    let output = hostel(&["--students", "100", "--rooms", "5", "--capacity", "18", "--json"]);
    let report = output.sound().remove(0);
    assert_eq!(number(&report, "visits"), 100);
    let audit = &report["audit"];
    assert_eq!((number(audit, "rooms"), number(audit, "beds")), (5, 90), "{report}");
    assert!(number(audit, "taken") > 60, "{report}");
    for (label, _) in report["calls"].as_object().expect("it is one") {
        assert!(["cancelled", "moved", "reserved", "room full"].contains(&&**label), "{report}");
    }
    for settled in ["recovered_before", "recovered_meanwhile", "recovered_after"] {
        let settled = &report[settled];
        assert_eq!((number(settled, "captured"), number(settled, "refunded")), (0, 0), "{report}");
    }
}

#[test]
fn chaos_runs_in_a_row_hold_inside_one_process() {
    let chaos = ["--students", "150", "--rooms", "6", "--chaos", "0.6", "--runs", "20", "--json"];
    let reports = hostel(&chaos).sound();
    assert_eq!(reports.len(), 20);
    for (report, seed) in reports.iter().zip(1..) {
        assert_eq!(number(report, "seed"), seed);
        for label in ["dropped half way", "payment declined", "payment timed out", "room full"] {
            assert!(number(&report["calls"], label) > 0, "{label}: {report}");
        }
        assert!(number(&report["calls"], "student missing") > 0, "{report}");
    }
    let roomy =
        ["--students", "150", "--rooms", "6", "--capacity", "40", "--chaos", "0.6", "--json"];
    let report = hostel(&roomy).sound().remove(0);
    assert!(number(&report["calls"], "moved") > 0, "{report}");
    let after = |report: &Value| number(&report["recovered_after"], "refunded");
    assert!(reports.iter().map(after).sum::<i64>() > 0, "there was something to recover");
}

#[test]
fn a_report_reads_well() {
    let output = hostel(&["--students", "40", "--rooms", "2", "--capacity", "3", "--chaos", "0.5"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    for part in [
        "Hostel: 40 students from this process, rooms: 2, beds in each: 3, chaos: 0.5, seed: 1\n",
        "Locks: in the memory of this process",
        "Documents: in the memory of this process",
        "  room full\n",
        " of 6 taken, ",
        "\nOK: rooms, students, payments and the provider's books agree.\n",
    ] {
        assert!(output.stdout.contains(part), "{part:?} is missing in:\n{}", output.stdout);
    }
    let output = hostel(&["--students", "5", "--rooms", "1", "--runs", "3"]);
    assert!(output.stdout.ends_with("\nOK: 3 runs in a row.\n"), "{output:?}");
    assert_eq!(output.stdout.matches("  ok\n").count(), 3, "{output:?}");
}

#[test]
fn a_hostel_without_beds_is_full() {
    let output = hostel(&["--students", "9", "--rooms", "2", "--capacity", "0", "--json"]);
    let report = output.sound().remove(0);
    assert_eq!(number(&report["calls"], "room full"), 27, "{report}");
    assert_eq!(number(&report["audit"], "refunded"), 0, "nobody pays for a full room: {report}");
}
