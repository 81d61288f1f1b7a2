//! The processes of a fleet.
//!
//! The parent writes the job to a worker's standard input, one line of JSON, and reads messages from
//! its standard output, one per line. URLs may hold passwords, so they travel here and not in
//! arguments, which any user of the machine can list.

use std::ops::Range;
use std::process::Stdio;

use example_support::{ServerUrl, Signal, locks_on, mongodb_at};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

use crate::Error;
use crate::database::MongoDatabase;
use crate::startup::{Faults, Process};
use crate::tasks::{self, Served};

/// What a worker is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) number: u32,
    pub(crate) tasks: Range<u32>,
    pub(crate) faults: Faults,
    pub(crate) redis: ServerUrl,
    pub(crate) mongodb: ServerUrl,
    pub(crate) database: String,
    pub(crate) run: String,
}

/// What a worker reports.
#[derive(Serialize, Deserialize)]
enum Message {
    Ready,
    /// The migration is half way, and hangs.
    HalfWay,
    Served(Vec<Served>),
    Failed(String),
}

/// The line that lets the tasks start.
const OPEN: &[u8] = b"open\n";

/// A worker process.
#[derive(Debug)]
pub(crate) struct Worker {
    process: Child,
    stdin: Option<ChildStdin>,
    messages: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts a worker and waits until it is connected.
    pub(crate) async fn start(job: &Job) -> Result<Self, Error> {
        let program = std::env::current_exe().map_err(Error::Worker)?;
        let mut process = Command::new(program)
            .arg("--worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(Error::Worker)?;
        let (Some(mut stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Error::Worker(std::io::Error::other("it has no pipes")));
        };
        let mut line = serde_json::to_vec(job)?;
        line.push(b'\n');
        stdin.write_all(&line).await.map_err(Error::Worker)?;
        let mut worker = Self { process, stdin: Some(stdin), messages: BufReader::new(stdout) };
        match worker.next().await? {
            Some(Message::Ready) => Ok(worker),
            Some(Message::Failed(reason)) => Err(Error::Worker(std::io::Error::other(reason))),
            _ => Err(Error::Worker(std::io::Error::other("it ended before it was ready"))),
        }
    }

    /// Lets the tasks start.
    pub(crate) async fn open(&mut self) {
        if let Some(stdin) = &mut self.stdin {
            // Of a worker that has died meanwhile nothing will be heard.
            let _ = stdin.write_all(OPEN).await;
        }
    }

    /// Waits for the worker's end, and kills it when it is half way through the migration. `None` if
    /// it was killed.
    pub(crate) async fn finish(mut self) -> Result<Option<Vec<Served>>, Error> {
        let mut served = None;
        while let Some(message) = self.next().await? {
            match message {
                Message::Served(all) => {
                    served = Some(all);
                    // It reads its input to see whether its parent is there, and ends with it.
                    self.stdin.take();
                }
                // SIGKILL: no destructor runs, and nothing is released.
                Message::HalfWay => self.process.start_kill().map_err(Error::Worker)?,
                Message::Ready | Message::Failed(_) => {}
            }
        }
        self.process.wait().await.map_err(Error::Worker)?;
        Ok(served)
    }

    async fn next(&mut self) -> Result<Option<Message>, Error> {
        let mut line = String::new();
        self.messages.read_line(&mut line).await.map_err(Error::Worker)?;
        // A worker that is killed may leave half a line.
        if !line.ends_with('\n') {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&line)?))
    }
}

/// Runs this process as a worker.
///
/// # Errors
/// When the parent cannot be talked to. What else goes wrong, the parent is told.
pub async fn work() -> Result<(), Error> {
    let mut stdin = BufReader::new(tokio::io::stdin()).lines();
    let job = stdin.next_line().await.map_err(Error::Worker)?.unwrap_or_default();
    let job: Job = serde_json::from_str(&job)?;
    let (locks, mongo) = match tokio::try_join!(locks_on(&job.redis), mongodb_at(&job.mongodb)) {
        Ok(connected) => connected,
        Err(error) => return report(&Message::Failed(error.to_string())).await,
    };
    let (half_way, mut is_half_way) = watch::channel(false);
    let database = MongoDatabase::new(mongo, &job.database);
    let Job { number, tasks, faults, run, .. } = job;
    let process = Process { number, locks, database, run, faults, half_way };

    report(&Message::Ready).await?;
    if stdin.next_line().await.map_err(Error::Worker)?.is_none() {
        return Err(Error::Worker(std::io::ErrorKind::UnexpectedEof.into()));
    }
    let served = tokio::select! {
        served = tasks::run(&process, tasks) => served,
        // The tasks go on meanwhile, until the parent has read it.
        error = async {
            let _ = is_half_way.wait_for(|half_way| *half_way).await;
            match report(&Message::HalfWay).await {
                Ok(()) => std::future::pending().await,
                Err(error) => error,
            }
        } => return Err(error),
        // The parent is gone.
        _ = stdin.next_line() => return Err(Signal::Terminate.into()),
    };
    process.locks.shutdown().await;
    report(&Message::Served(served)).await
}

async fn report(message: &Message) -> Result<(), Error> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut stdout = tokio::io::stdout();
    stdout.write_all(&line).await.map_err(Error::Worker)?;
    stdout.flush().await.map_err(Error::Worker)
}
