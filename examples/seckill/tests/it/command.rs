//! Runs the command as a user does.

use std::io::Read;
use std::process::{Command, Stdio};
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

/// Runs `seckill` with these arguments and with no servers but those they name.
pub(crate) fn seckill(arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_seckill"))
        .args(arguments)
        .env_remove("REDIS_URL")
        .env_remove("MONGODB_URI")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let stdout = reader(child.stdout.take().expect("it is a pipe"));
    let stderr = reader(child.stderr.take().expect("it is a pipe"));
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break status;
        }
        if started.elapsed() > HANG {
            child.kill().expect("it is our child");
            panic!("seckill {arguments:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let text = |reader: std::thread::JoinHandle<String>| reader.join().expect("it is UTF-8");
    Output { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

fn reader(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).expect("it is UTF-8");
        text
    })
}

impl Output {
    /// The report of a run with `--json`.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "one object: {self:?}");
        serde_json::from_str(&self.stdout).expect("it is JSON")
    }

    /// Checks that nothing was sold twice or lost in the only mode of a run with `--json`, and
    /// returns its row.
    #[track_caller]
    pub(crate) fn sound_row(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        let report = self.json();
        assert_eq!(report["ok"], true, "{self:?}");
        let row = report["modes"][0].clone();
        assert_eq!(row["oversold"], 0, "{self:?}");
        row
    }
}

/// The number under `name`.
#[track_caller]
pub(crate) fn number(row: &Value, name: &str) -> i64 {
    row[name].as_i64().unwrap_or_else(|| panic!("{name} is no integer in {row}"))
}
