//! The tasks of one process: all released at once.

use std::ops::Range;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::database::Database;
use crate::startup::{Process, StartError};

/// A task that has failed so often gives up.
const TRIES: u32 = 10;

/// What became of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// Microseconds from the opening to the end.
    pub wait_us: u64,
    /// The errors that it met on the way: its own attempts at the migration that failed.
    pub errors: Vec<String>,
    /// It has done what it is there for.
    pub ok: bool,
}

/// Starts all tasks of a process at once, and waits for them.
pub async fn run<D: Database>(process: &Process<D>, tasks: Range<u32>) -> Vec<Served> {
    let opened = Instant::now();
    let mut running = JoinSet::new();
    for task in tasks {
        let process = process.clone();
        running.spawn(async move {
            let (errors, ok) = serve(&process, task).await;
            let wait_us = opened.elapsed().as_micros().try_into().unwrap_or(u64::MAX);
            let errors = errors.iter().map(StartError::to_string).collect();
            Served { wait_us, errors, ok }
        });
    }
    running.join_all().await
}

/// A task whose own attempt has failed asks again, as it would after an error of any other service.
async fn serve<D: Database>(process: &Process<D>, task: u32) -> (Vec<StartError>, bool) {
    let mut errors = Vec::new();
    for _ in 0..TRIES {
        match process.start(task).await {
            Ok(()) => return (errors, true),
            Err(error) => errors.push(error),
        }
    }
    (errors, false)
}
