//! The processes of a run, and whoever kills them.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use rand::Rng;
use rand::seq::IndexedRandom;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::Error;
use crate::settle::Settled;
use crate::visits::{Answer, Visit};
use crate::worker::{Job, Message, Worker};

/// What came of the processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fleet {
    /// Processes that were killed.
    pub(crate) killed: u64,
    /// Visits that were begun again, since the process had died.
    pub(crate) begun_again: u64,
    /// What the processes recovered when they started.
    pub(crate) recovered: Settled,
}

/// Spreads the visits of `job` over processes, and kills one of them every so often.
pub(crate) async fn race(
    job: &Job,
    processes: u32,
    kill_every: Option<Duration>,
    answers: &mpsc::UnboundedSender<Answer>,
) -> Result<Fleet, Error> {
    let mut places = JoinSet::new();
    let mut triggers = Vec::new();
    for index in 0..processes as usize {
        let visits = job.visits.iter().skip(index).step_by(processes as usize).cloned().collect();
        let (trigger, shot) = mpsc::channel(1);
        triggers.push(trigger);
        let seed = job.mood_seed.wrapping_add(index as u64);
        let crash_after = job.crash_after.filter(|_| index == 0);
        let job = Job { visits, mood_seed: seed, crash_after, ..job.clone() };
        places.spawn(keep_alive(job, shot, answers.clone()));
    }
    let killing = async {
        let Some(pause) = kill_every else { return std::future::pending().await };
        let mut dice = job.plan.dice(u64::MAX);
        loop {
            tokio::time::sleep(pause).await;
            triggers.retain(|trigger| !trigger.is_closed());
            if let Some(trigger) = triggers.choose(&mut dice) {
                // One that is about to be killed already is not killed twice.
                let _ = trigger.try_send(());
            }
        }
    };
    let serving = async {
        let mut fleet = Fleet::default();
        while let Some(place) = places.join_next().await {
            let Fleet { killed, begun_again, recovered } =
                place.map_err(|error| Error::Worker(error.into()))??;
            fleet.killed += killed;
            fleet.begun_again += begun_again;
            fleet.recovered += recovered;
        }
        Ok(fleet)
    };
    tokio::select! {
        fleet = serving => fleet,
        () = killing => Ok(Fleet::default()),
    }
}

/// Runs one process after the other until all of `job` is done.
async fn keep_alive(
    mut job: Job,
    mut shot: mpsc::Receiver<()>,
    answers: mpsc::UnboundedSender<Answer>,
) -> Result<Fleet, Error> {
    let mut fleet = Fleet::default();
    let mut left: BTreeMap<u32, Visit> =
        job.visits.drain(..).map(|visit| (visit.number, visit)).collect();
    loop {
        job.visits = left.values().cloned().collect();
        let mut worker = Worker::start(&job).await?;
        let mut is_killed = false;
        loop {
            tokio::select! {
                message = worker.next() => match message? {
                    Some(Message::Answer(answer)) => {
                        left.remove(&answer.number);
                        let _ = answers.send(answer);
                    }
                    Some(Message::Recovered { captured, refunded }) => {
                        fleet.recovered += Settled { captured, refunded };
                    }
                    Some(Message::Failed(reason)) => {
                        return Err(Error::Worker(io::Error::other(reason)));
                    }
                    None => break,
                },
                Some(()) = shot.recv(), if !is_killed => {
                    worker.kill()?;
                    is_killed = true;
                    fleet.killed += 1;
                }
            }
        }
        worker.ended().await?;
        if left.is_empty() {
            return Ok(fleet);
        }
        let has_crashed = job.crash_after.take().is_some();
        fleet.killed += u64::from(has_crashed && !is_killed);
        if !is_killed && !has_crashed {
            return Err(Error::Worker(io::Error::other(
                "it ended before its students had an answer",
            )));
        }
        fleet.begun_again += left.len() as u64;
        for visit in left.values_mut() {
            // What was done for them before, nobody was told.
            visit.alone = false;
        }
        job.mood_seed = job.plan.dice(job.mood_seed).random();
    }
}
