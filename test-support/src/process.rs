use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server process that does not outlive this one.
///
/// `Drop` kills it. When this process is killed, so that no `Drop` runs, a watcher does: a shell
/// that waits for the end of a pipe of which only this process holds the other end.
#[derive(Debug)]
pub(crate) struct Process {
    server: Child,
    watcher: Child,
}

/// Both get process groups of their own, and the watcher ignores what a terminal sends: it has to
/// outlive the test.
const WATCH: &str = r#"trap '' INT TERM HUP; read -r _; kill -KILL "$1"; rm -rf "$2""#;

impl Process {
    /// Starts `command`; its output goes to `out.log` and `err.log` in `dir`, which is removed with
    /// the process if this process is killed.
    pub(crate) fn spawn(mut command: Command, dir: &Path) -> Self {
        let log = |name: &str| File::create(dir.join(name)).expect("the directory is writable");
        let server = command
            .stdin(Stdio::null())
            .stdout(log("out.log"))
            .stderr(log("err.log"))
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("cannot run {}: {error}", command.get_program().display())
            });
        let watcher = Command::new("sh")
            .args(["-c", WATCH, "watcher"])
            .arg(server.id().to_string())
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("there is a shell");
        Self { server, watcher }
    }

    pub(crate) fn id(&self) -> u32 {
        self.server.id()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.server.try_wait(), Ok(None))
    }

    /// Sends a signal by its name, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("sh")
            .args(["-c", r#"kill -"$1" "$2""#, "kill", name])
            .arg(self.id().to_string())
            .status()
            .expect("there is a shell");
        assert!(status.success(), "cannot send {name} to process {}", self.id());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The watcher first: once the server is reaped, its number may be another process's.
        for child in [&mut self.watcher, &mut self.server] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
