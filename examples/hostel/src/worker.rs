//! A process that serves students, for `--processes`.
//!
//! The parent writes the job to a worker's standard input, one line of JSON, and reads messages
//! from its standard output, one per line. URLs may hold passwords, so they travel here and not
//! in arguments, which any user of the machine can list.

use std::io;
use std::process::Stdio;

use example_support::{ServerUrl, locks_on, mongodb_at};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

use crate::Error;
use crate::hostel::{Hostel, Reached, Step};
use crate::provider::{MongoProvider, MoodyProvider};
use crate::settle::Settled;
use crate::store::MongoStore;
use crate::visits::{self, Answer, Plan, Visit};

/// What a worker is to do.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) plan: Plan,
    pub(crate) visits: Vec<Visit>,
    pub(crate) redis: ServerUrl,
    pub(crate) mongodb: ServerUrl,
    pub(crate) database: String,
    /// Differs for each process, or all would have the same bad luck.
    pub(crate) mood_seed: u64,
    /// The process dies as soon as a call has done this step.
    pub(crate) crash_after: Option<Step>,
}

/// What a worker reports.
#[derive(Serialize, Deserialize)]
pub(crate) enum Message {
    /// A visit is over.
    Answer(Answer),
    /// What it has recovered when it started.
    Recovered { captured: u64, refunded: u64 },
    /// It cannot work.
    Failed(String),
}

/// A worker process, as its parent sees it.
#[derive(Debug)]
pub(crate) struct Worker {
    process: Child,
    /// Open while the parent lives.
    _stdin: ChildStdin,
    messages: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts a worker.
    pub(crate) async fn start(job: &Job) -> Result<Self, Error> {
        let program = std::env::current_exe().map_err(Error::Worker)?;
        let mut process = Command::new(program)
            .arg("--worker")
            .env_remove("REDIS_URL")
            .env_remove("MONGODB_URI")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(Error::Worker)?;
        let (Some(mut stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Error::Worker(io::Error::other("it has no pipes")));
        };
        let mut line = serde_json::to_vec(job)?;
        line.push(b'\n');
        stdin.write_all(&line).await.map_err(Error::Worker)?;
        Ok(Self { process, _stdin: stdin, messages: BufReader::new(stdout).lines() })
    }

    /// The next message; `None` when it has ended. Can be dropped and called again.
    pub(crate) async fn next(&mut self) -> Result<Option<Message>, Error> {
        let Some(line) = self.messages.next_line().await.map_err(Error::Worker)? else {
            return Ok(None);
        };
        match serde_json::from_str(&line) {
            Ok(message) => Ok(Some(message)),
            // One that is killed may leave half a line.
            Err(error) if error.is_eof() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Kills it with SIGKILL, in the middle of whatever it is doing.
    pub(crate) fn kill(&mut self) -> Result<(), Error> {
        self.process.start_kill().map_err(Error::Worker)
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(mut self) -> Result<(), Error> {
        self.process.wait().await.map_err(Error::Worker).map(drop)
    }
}

/// Runs this process as a worker.
///
/// # Errors
/// When the parent cannot be talked to. What else goes wrong, the parent is told.
pub async fn work() -> Result<(), Error> {
    let (first_line, job) = oneshot::channel();
    let (end, parent_gone) = oneshot::channel::<()>();
    // A thread of its own, not the runtime's: that would wait for the end of the input before it ends.
    std::thread::spawn(move || {
        let mut lines = io::stdin().lines();
        let _ = first_line.send(lines.next());
        let _ = lines.next();
        drop(end);
    });
    let job = job.await.ok().flatten().transpose().map_err(Error::Worker)?.unwrap_or_default();
    let job: Job = serde_json::from_str(&job)?;
    let outcome = tokio::select! {
        outcome = serve(job) => outcome,
        _ = parent_gone => return Err(Error::Worker(io::ErrorKind::UnexpectedEof.into())),
    };
    match outcome {
        Err(error) => report(&Message::Failed(error.to_string())).await,
        Ok(()) => Ok(()),
    }
}

async fn serve(job: Job) -> Result<(), Error> {
    let (locks, mongodb) = tokio::try_join!(locks_on(&job.redis), mongodb_at(&job.mongodb))?;
    let database = mongodb.database(&job.database);
    let provider = MongoProvider::new(&database);
    let hostel = Hostel {
        name: job.database,
        locks: locks.clone(),
        store: MongoStore::open(&database).await?,
        provider: MoodyProvider::new(provider, job.plan.mood(), job.mood_seed),
        steps: job.crash_after.map(crash_after),
    };
    // Students need not wait for it: each call settles what is open of its own student.
    let recovering = async {
        let Settled { captured, refunded } = hostel.recover().await?.settled;
        report(&Message::Recovered { captured, refunded }).await
    };
    let (answers, mut answered) = mpsc::unbounded_channel();
    let serving = async {
        visits::serve(&hostel, job.plan, job.visits, &answers).await;
        drop(answers);
        Ok(())
    };
    let reporting = async {
        while let Some(answer) = answered.recv().await {
            report(&Message::Answer(answer)).await?;
        }
        Ok(())
    };
    tokio::try_join!(recovering, serving, reporting)?;
    locks.shutdown().await;
    Ok(())
}

/// Where the steps of calls go if the process is to die after one of them.
fn crash_after(step: Step) -> mpsc::UnboundedSender<Reached> {
    let (steps, mut reached) = mpsc::unbounded_channel::<Reached>();
    tokio::spawn(async move {
        while let Some(done) = reached.recv().await {
            if done.step == step {
                // No destructor runs and nothing is flushed, as with kill -9.
                std::process::abort();
            }
            let _ = done.go_on.send(());
        }
    });
    steps
}

async fn report(message: &Message) -> Result<(), Error> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut stdout = tokio::io::stdout();
    stdout.write_all(&line).await.map_err(Error::Worker)?;
    stdout.flush().await.map_err(Error::Worker)
}
