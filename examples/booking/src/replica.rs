//! The service as a process of its own, for the load and for tests.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A running `booking`. Dropped, it is killed; and if this process is killed, it ends.
#[derive(Debug)]
pub struct Replica {
    process: Child,
    address: SocketAddr,
    /// Ends when this process does, however that is.
    _input: Option<ChildStdin>,
    /// What follows the line that says where it listens; to be kept open.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Replica {
    /// Starts `program` on a free port, with these arguments and variables, and waits until it
    /// listens.
    ///
    /// # Errors
    /// When it ends before it listens; it has said why on standard error.
    pub async fn start<'a>(
        program: &Path,
        arguments: &[&str],
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
        stderr: Stdio,
    ) -> io::Result<Self> {
        let mut process = Command::new(program)
            .args(["--listen", "127.0.0.1:0", "--end-with-stdin"])
            .args(arguments)
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()?;
        let input = process.stdin.take();
        let stdout = process.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut output = BufReader::new(stdout).lines();
        let line = output.next_line().await?.unwrap_or_default();
        let address = line.rsplit_once("http://").and_then(|(_, address)| address.parse().ok());
        let address = address
            .ok_or_else(|| io::Error::other("a replica ended before it listened".to_owned()))?;
        Ok(Self { process, address, _input: input, _output: output })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process, as long as it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Sends SIGTERM.
    ///
    /// # Errors
    /// When it has ended.
    pub fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = self.process.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        kill_process(pid.ok_or(io::ErrorKind::NotFound)?, signal)?;
        Ok(())
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }
}
