//! What a worker process does under locks.

use std::{path::PathBuf, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::{sync::Barrier, task::JoinSet};

use crate::{
    Error, clock,
    implementation::{Foreign, Held, Implementation, Kind, name},
    section::{Body, Interval, Signal, Word, Work},
};

/// One process's part of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Acquires and releases, again and again, one lock after the other of sixteen.
    Cycle { cycles: u32 },
    /// Callers that come at the same moment, spread over some keys; each has so many sections.
    Crowd { callers: u32, keys: u32, sections: u32 },
    /// Takes turns with the process of the other number: while one holds the lock, the other waits
    /// for it, and never does one take it twice in a row.
    TakeTurns(Turns),
    /// As `TakeTurns`, but as a foreign program would: with a plain `SET NX PX` on the record of
    /// the other one's lock.
    TakeTurnsAsForeigner(Turns),
    /// Holds that many locks for some time.
    Hold { leases: u32, milliseconds: u64 },
}

/// See [`Task::TakeTurns`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Turns {
    pub(crate) turns: u32,
    /// 0 or 1; 0 begins.
    pub(crate) process: u32,
    /// The length of a section in microseconds: at random between the two.
    pub(crate) hold_us: (u64, u64),
    /// Where the two meet.
    pub(crate) directory: PathBuf,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Nanoseconds of the clock that all processes share.
    pub(crate) started: u64,
    pub(crate) ended: u64,
    /// From the request to the section's start, in nanoseconds.
    pub(crate) waits: Vec<u64>,
    /// The sections, by key.
    pub(crate) sections: Vec<(u32, Interval)>,
    pub(crate) failed: u32,
    pub(crate) first_error: Option<String>,
    pub(crate) cpu: Duration,
    /// How many `SET` were sent, if this is the foreign program.
    pub(crate) foreign_sets: Option<u32>,
    /// Of the locks that were held.
    pub(crate) held: u32,
    pub(crate) lost: u32,
}

impl Outcome {
    fn section(&mut self, key: u32, asked: u64, outcome: Result<Interval, Error>) -> bool {
        match outcome {
            Ok(interval) => {
                self.waits.push(interval.start - asked);
                self.sections.push((key, interval));
                true
            }
            Err(error) => {
                self.failed += 1;
                self.first_error.get_or_insert_with(|| error.to_string());
                false
            }
        }
    }
}

/// A task that waits for the word to begin.
pub(crate) struct Prepared {
    lock: Option<Implementation>,
    run: u64,
    task: Ready,
}

/// A section's key, when it was asked for, and what came of it.
type Section = (u32, u64, Result<Interval, Error>);

enum Ready {
    Cycle { cycles: u32 },
    Crowd { callers: JoinSet<Vec<Section>>, doors: Arc<Barrier> },
    TakeTurns(Turns, Arc<Signal>, Player),
    Hold { held: Vec<Held>, failed: Outcome, milliseconds: u64 },
}

/// One of two that take turns.
enum Player {
    With(Implementation, u64),
    Foreign(Foreign),
}

impl Player {
    async fn section(&mut self, body: Body) -> Result<Interval, Error> {
        match self {
            Self::With(lock, run) => lock.section(*run, 0, body).await,
            Self::Foreign(foreign) => foreign.section(body).await,
        }
    }
}

/// Opens connections, loads scripts, and does all else that must be done before the clock starts.
pub(crate) async fn prepare(
    task: Task,
    kind: Kind,
    run: u64,
    url: &str,
) -> Result<Prepared, Error> {
    if let Task::TakeTurnsAsForeigner(turns) = task {
        let record = kind.record(&name(run, 0));
        let signal = Arc::new(Signal::open(&turns.directory, turns.process)?);
        let foreign = Foreign::connect(url, record).await?;
        let task = Ready::TakeTurns(turns, signal, Player::Foreign(foreign));
        return Ok(Prepared { lock: None, run, task });
    }
    let lock = Implementation::connect(kind, url).await?;
    // Of a key of its own: those of the run begin with 0.
    let warm_up = u32::MAX - std::process::id();
    lock.section(run, warm_up, Body::default()).await?;
    let task = match task {
        Task::Cycle { cycles } => Ready::Cycle { cycles },
        Task::Crowd { callers, keys, sections } => gather(&lock, run, callers, keys, sections),
        Task::TakeTurns(turns) => {
            let signal = Arc::new(Signal::open(&turns.directory, turns.process)?);
            Ready::TakeTurns(turns, signal, Player::With(lock.clone(), run))
        }
        Task::TakeTurnsAsForeigner(..) => unreachable!("it has been dealt with"),
        Task::Hold { leases, milliseconds } => {
            let (held, failed) = acquire_all(&lock, run, leases).await?;
            Ready::Hold { held, failed, milliseconds }
        }
    };
    Ok(Prepared { lock: Some(lock), run, task })
}

impl Prepared {
    pub(crate) async fn start(self) -> Result<Outcome, Error> {
        let Self { lock, run, task } = self;
        let cpu = clock::cpu();
        let started = clock::now();
        let mut outcome = match (task, &lock) {
            (Ready::Cycle { cycles }, Some(lock)) => cycle(lock, run, cycles).await,
            (Ready::Crowd { callers, doors }, _) => crowd(callers, &doors).await?,
            (Ready::TakeTurns(turns, signal, player), _) => {
                take_turns(&turns, &signal, player).await?
            }
            (Ready::Hold { held, failed, milliseconds }, _) => {
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                let lost = held.iter().filter(|held| held.is_lost()).count();
                let outcome = Outcome {
                    held: count(held.len()),
                    lost: count(lost),
                    cpu: clock::cpu() - cpu,
                    started,
                    ended: clock::now(),
                    ..failed
                };
                // A hundred thousand releases are not what is measured.
                std::mem::forget(held);
                return Ok(outcome);
            }
            (Ready::Cycle { .. }, None) => unreachable!("it is prepared with a lock"),
        };
        outcome.started = started;
        outcome.ended = clock::now();
        if let Some(lock) = &lock {
            // What goes on behind the caller's back is work nonetheless.
            lock.finish().await;
        }
        outcome.cpu = clock::cpu() - cpu;
        Ok(outcome)
    }
}

async fn cycle(lock: &Implementation, run: u64, cycles: u32) -> Outcome {
    let mut outcome = Outcome::default();
    for cycle in 0..cycles {
        let key = cycle % 16;
        let asked = clock::now();
        let section = lock.section(run, key, Body::default()).await;
        outcome.section(key, asked, section);
    }
    outcome
}

fn gather(lock: &Implementation, run: u64, number: u32, keys: u32, sections: u32) -> Ready {
    let doors = Arc::new(Barrier::new(number as usize + 1));
    let mut callers = JoinSet::new();
    for caller in 0..number {
        let (lock, doors, key) = (lock.clone(), Arc::clone(&doors), caller % keys);
        callers.spawn(async move {
            doors.wait().await;
            let mut outcomes = Vec::with_capacity(sections as usize);
            for _ in 0..sections {
                let asked = clock::now();
                let body = Body { work: Work::Yield, ..Body::default() };
                outcomes.push((key, asked, lock.section(run, key, body).await));
            }
            outcomes
        });
    }
    Ready::Crowd { callers, doors }
}

async fn crowd(mut callers: JoinSet<Vec<Section>>, doors: &Barrier) -> Result<Outcome, Error> {
    let mut outcome = Outcome::default();
    doors.wait().await;
    while let Some(caller) = callers.join_next().await {
        for (key, asked, section) in caller? {
            outcome.section(key, asked, section);
        }
    }
    Ok(outcome)
}

async fn take_turns(
    turns: &Turns,
    signal: &Arc<Signal>,
    mut player: Player,
) -> Result<Outcome, Error> {
    let mut outcome = Outcome::default();
    for turn in 0..turns.turns {
        if turn > 0 || turns.process > 0 {
            // The other one is inside: time to get in line.
            if signal.receive().await? == Word::GaveUp {
                break;
            }
        }
        let work = match turns.hold_us {
            (0, 0) => Work::Yield,
            range => Work::Sleep(Duration::from_micros(random(range))),
        };
        let body = Body { work, tell: Some(Arc::clone(signal)) };
        let asked = clock::now();
        if !outcome.section(0, asked, player.section(body).await) {
            signal.send(Word::GaveUp);
            break;
        }
    }
    if let Player::Foreign(foreign) = &player {
        outcome.foreign_sets = Some(foreign.sets);
    }
    Ok(outcome)
}

/// Enough at once to keep the connection busy, and not so many that they time out.
const AT_ONCE: u32 = 64;

async fn acquire_all(
    lock: &Implementation,
    run: u64,
    leases: u32,
) -> Result<(Vec<Held>, Outcome), Error> {
    let mut all = Vec::new();
    let mut failed = Outcome::default();
    let mut tasks = JoinSet::new();
    for task in 0..AT_ONCE {
        let lock = lock.clone();
        tasks.spawn(async move {
            let mut held = Vec::new();
            for key in (task..leases).step_by(AT_ONCE as usize) {
                held.push(lock.hold(run, key).await);
            }
            held
        });
    }
    while let Some(task) = tasks.join_next().await {
        for held in task? {
            match held {
                Ok(held) => all.push(held),
                Err(error) => {
                    failed.failed += 1;
                    failed.first_error.get_or_insert_with(|| error.to_string());
                }
            }
        }
    }
    Ok((all, failed))
}

fn random((from, to): (u64, u64)) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    from + RandomState::new().hash_one(clock::now()) % (to - from + 1)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
