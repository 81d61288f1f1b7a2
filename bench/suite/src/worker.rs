//! Processes of a run: this program, started again with `worker` as its argument. The parent writes
//! a job to a worker's standard input, and later the word to begin; the worker writes that it is
//! ready, and later the outcome. All are lines of JSON.

use std::{io::BufRead, process::Stdio, time::Duration};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::{
    Error,
    implementation::Kind,
    task::{self, Outcome, Task},
};

/// The hidden subcommand.
pub(crate) const ARGUMENT: &str = "worker";

/// No run takes that long, unless a caller waits for ever.
const PATIENCE: Duration = Duration::from_secs(180);

/// What a process has to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) kind: Kind,
    pub(crate) flavour: Flavour,
    pub(crate) url: String,
    /// Keys of different runs are different.
    pub(crate) run: u64,
    pub(crate) task: Task,
}

/// What the tasks of a process run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Flavour {
    CurrentThread,
    MultiThread,
}

impl Flavour {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CurrentThread => "current_thread",
            Self::MultiThread => "multi_thread",
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
enum Message {
    Ready,
    Done(Outcome),
    Failed(String),
}

/// A worker, as seen by the parent.
#[derive(Debug)]
pub(crate) struct Worker {
    // Killed when it is dropped.
    _process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts it, and waits until it is ready.
    pub(crate) async fn start(job: &Job) -> Result<Self, Error> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("a worker has no pipes".into());
        };
        let mut worker = Self { _process: process, stdin, stdout: BufReader::new(stdout) };
        let mut line = serde_json::to_vec(job)?;
        line.push(b'\n');
        worker.stdin.write_all(&line).await?;
        match worker.next().await? {
            Message::Ready => Ok(worker),
            Message::Failed(error) => Err(error.into()),
            Message::Done(_) => Err("a worker was done before it began".into()),
        }
    }

    /// The word to begin.
    pub(crate) async fn begin(&mut self) -> Result<(), Error> {
        Ok(self.stdin.write_all(b"\n").await?)
    }

    pub(crate) async fn outcome(&mut self) -> Result<Outcome, Error> {
        match self.next().await? {
            Message::Done(outcome) => Ok(outcome),
            Message::Failed(error) => Err(error.into()),
            Message::Ready => Err("a worker was ready twice".into()),
        }
    }

    async fn next(&mut self) -> Result<Message, Error> {
        let mut line = String::new();
        match tokio::time::timeout(PATIENCE, self.stdout.read_line(&mut line)).await {
            Ok(Ok(0)) => Err("a worker has ended".into()),
            Ok(read) => {
                read?;
                Ok(serde_json::from_str(&line)?)
            }
            Err(_) => Err(format!("nothing was heard of a worker for {PATIENCE:?}").into()),
        }
    }
}

/// The worker's own side.
pub(crate) fn main() -> Result<(), Error> {
    let job: Job = read()?;
    let mut runtime = match job.flavour {
        Flavour::CurrentThread => tokio::runtime::Builder::new_current_thread(),
        Flavour::MultiThread => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.enable_all().build()?;
    let message = match runtime.block_on(work(job)) {
        Ok(outcome) => Message::Done(outcome),
        Err(error) => Message::Failed(error.to_string()),
    };
    write(&message)?;
    // Nothing that is left is worth waiting for.
    std::process::exit(0)
}

async fn work(job: Job) -> Result<Outcome, Error> {
    // In a task, as in a program: on the multi-threaded flavour, what `block_on` itself runs is on
    // none of its threads.
    tokio::spawn(async move {
        let Job { kind, url, run, task, .. } = job;
        let prepared = task::prepare(task, kind, run, &url).await?;
        write(&Message::Ready)?;
        // Connections have tasks, which go on meanwhile.
        tokio::task::spawn_blocking(|| std::io::stdin().lock().read_line(&mut String::new()))
            .await??;
        prepared.start().await
    })
    .await?
}

fn read<T: DeserializeOwned>() -> Result<T, Error> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

fn write(message: &Message) -> Result<(), Error> {
    use std::io::Write;
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&line)?;
    Ok(stdout.flush()?)
}
