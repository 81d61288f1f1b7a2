//! The buyers of other processes, for `--processes`.
//!
//! The parent writes the job to a worker's standard input, one line of JSON, and reads messages
//! from its standard output, one per line. URLs may hold passwords, so they travel here and not
//! in arguments, which any user of the machine can list.

use std::process::Stdio;
use std::time::Duration;

use example_support::{ServerUrl, locks_on};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

use crate::Error;
use crate::buyers::{self, Answer, Crowd};
use crate::cli::Step;
use crate::processes::LockCounts;
use crate::server::{MongoInventory, mongodb_at};
use crate::shop::Shop;

/// What a worker is to do.
#[derive(Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) crowd: Crowd,
    pub(crate) redis: ServerUrl,
    pub(crate) mongodb: ServerUrl,
    pub(crate) database: String,
    pub(crate) think: Duration,
    pub(crate) crash_after: Option<Step>,
}

/// What a worker reports.
#[derive(Serialize, Deserialize)]
enum Message {
    Ready,
    Answer(Answer),
    /// The last of them.
    Served(LockCounts),
    Failed(String),
}

/// The line that opens the doors.
const OPEN: &[u8] = b"open\n";

/// A worker process whose buyers are in line.
#[derive(Debug)]
pub(crate) struct Worker {
    process: Child,
    stdin: ChildStdin,
    messages: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts a worker and waits until its buyers are in line.
    pub(crate) async fn start(job: &Job) -> Result<Self, Error> {
        let program = std::env::current_exe().map_err(Error::Worker)?;
        let mut process = Command::new(program)
            .arg("--worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(Error::Worker)?;
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Error::Worker(std::io::Error::other("it has no pipes")));
        };
        let messages = BufReader::new(stdout);
        let mut worker = Self { process, stdin, messages };

        let mut line = serde_json::to_vec(job)?;
        line.push(b'\n');
        worker.stdin.write_all(&line).await.map_err(Error::Worker)?;
        match worker.next().await? {
            Some(Message::Ready) => Ok(worker),
            Some(Message::Failed(reason)) => Err(Error::Worker(std::io::Error::other(reason))),
            Some(Message::Answer(_) | Message::Served(_)) | None => {
                Err(Error::Worker(std::io::Error::other("it ended before its buyers were in line")))
            }
        }
    }

    /// Opens the doors.
    pub(crate) async fn open(&mut self) {
        // A worker that has died meanwhile shows by its buyers' getting no answer.
        let _ = self.stdin.write_all(OPEN).await;
    }

    /// Passes the answers on until the worker ends, however it does, and returns what it says of
    /// its locks. The buyers of one that is killed get no answer, and of its locks nothing is known.
    pub(crate) async fn finish(
        mut self,
        answers: mpsc::UnboundedSender<Answer>,
    ) -> Result<Option<LockCounts>, Error> {
        let mut locks = None;
        while let Some(message) = self.next().await? {
            match message {
                Message::Answer(answer) => drop(answers.send(answer)),
                Message::Served(counts) => locks = Some(counts),
                Message::Ready | Message::Failed(_) => {}
            }
        }
        self.process.wait().await.map_err(Error::Worker)?;
        Ok(locks)
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

    let connected = tokio::try_join!(locks_on(&job.redis), mongodb_at(&job.mongodb));
    let (locks, mongodb) = match connected {
        Ok((locks, mongodb)) => (locks, mongodb),
        Err(error) => return report(&Message::Failed(error.to_string())).await,
    };
    locks.install()?;
    let before = locks.stats();
    let shop = Shop {
        inventory: MongoInventory::new(mongodb.database(&job.database)),
        think: job.think,
        crash_after: job.crash_after,
    };

    let doors = async {
        report(&Message::Ready).await?;
        match stdin.next_line().await {
            Ok(Some(_)) => Ok(()),
            // The parent is gone.
            Ok(None) => Err(Error::Worker(std::io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(Error::Worker(error)),
        }
    };
    let (answers, mut answered) = mpsc::unbounded_channel();
    let serving = buyers::serve(&shop, &job.crowd, doors, answers);
    let reporting = async {
        while let Some(answer) = answered.recv().await {
            report(&Message::Answer(answer)).await?;
        }
        Ok(())
    };
    tokio::try_join!(serving, reporting)?;
    let counts = LockCounts::between(before, locks.stats());
    locks.shutdown().await;
    report(&Message::Served(counts)).await
}

async fn report(message: &Message) -> Result<(), Error> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut stdout = tokio::io::stdout();
    stdout.write_all(&line).await.map_err(Error::Worker)?;
    stdout.flush().await.map_err(Error::Worker)
}
