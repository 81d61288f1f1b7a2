//! Single flight: one caller computes, the others get its result, and none hangs when it fails.

mod deadlines;
mod encoding;
mod failures;
mod keep;
mod nested;
mod processes;
mod record;
mod sharing;
mod stale;
mod stores;
mod versions;

use std::{
    future::pending,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use cache_lock::{
    LockManager, SingleFlight, SingleFlightError,
    single_flight::{Failures, Kind, Local, Recorded},
};
use tokio::{sync::Semaphore, task::JoinSet};

use crate::common::fleet::PATIENT;

const HOUR: Duration = Duration::from_secs(3600);

const LOCKED: SingleFlight = SingleFlight::new().lock(PATIENT);
const LOCAL: SingleFlight<Local> = LOCKED.local();
const RECORDED: SingleFlight<Recorded> = LOCKED.record(HOUR);

/// The number of the computation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Failed(usize);

type Outcome = Result<usize, SingleFlightError<Failed>>;

/// Counts computations, and lets each go on when it is told to.
#[derive(Clone, Debug)]
struct Work {
    begun: Arc<AtomicUsize>,
    go: Arc<Semaphore>,
    /// So many computations fail before one succeeds.
    failures: usize,
}

impl Work {
    /// Computations that wait until they are [let](Self::let_go) go on.
    fn that_waits() -> Self {
        Self { begun: Arc::default(), go: Arc::new(Semaphore::new(0)), failures: 0 }
    }

    /// Computations that succeed at once.
    fn that_is_done() -> Self {
        let work = Self::that_waits();
        work.let_go();
        work
    }

    fn failing(mut self, failures: usize) -> Self {
        self.failures = failures;
        self
    }

    fn let_go(&self) {
        self.go.add_permits(Semaphore::MAX_PERMITS / 2);
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    /// The number of the computation, counted from 1.
    async fn compute(&self) -> Result<usize, Failed> {
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let _permit = self.go.acquire().await.expect("it stays open");
        if number <= self.failures { Err(Failed(number)) } else { Ok(number) }
    }
}

/// Calls `room`.
async fn call<K, P>(locks: LockManager, options: SingleFlight<K, P>, work: Work) -> Outcome
where
    K: Kind<usize>,
    P: Failures<Failed>,
{
    locks.single_flight("room", &options, || async { work.compute().await }).await
}

type Calling = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A call that has been polled once, so that it has asked.
fn calling<K, P>(locks: &LockManager, options: SingleFlight<K, P>, work: &Work) -> Calling
where
    K: Kind<usize> + Send + Sync + 'static,
    P: Failures<Failed> + Send + Sync + 'static,
{
    let mut calling: Calling = Box::pin(call(locks.clone(), options, work.clone()));
    poll_once(&mut calling);
    calling
}

fn poll_once(calling: &mut Calling) {
    let polled = calling.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending), "{polled:?}");
}

/// Runs calls to their ends, each in a task of its own. A panic is `None`.
async fn all(calls: impl IntoIterator<Item = Calling>) -> Vec<Option<Outcome>> {
    let mut tasks = JoinSet::new();
    for calling in calls {
        tasks.spawn(calling);
    }
    let mut outcomes = Vec::new();
    while let Some(outcome) = tasks.join_next().await {
        outcomes.push(outcome.ok());
    }
    outcomes
}

/// How many calls had which value, and the numbers of the errors.
fn sorted(outcomes: &[Option<Outcome>]) -> (Vec<usize>, Vec<usize>) {
    let (mut values, mut errors) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Some(Ok(value)) => values.push(*value),
            Some(Err(SingleFlightError::Compute(Failed(number)))) => errors.push(*number),
            other => panic!("{other:?}"),
        }
    }
    values.sort_unstable();
    errors.sort_unstable();
    (values, errors)
}

fn is_contended(outcome: &Outcome) -> bool {
    matches!(outcome, Err(SingleFlightError::Lock(error)) if error.is_contended())
}

async fn never<T>() -> T {
    pending().await
}

/// Not a test of its own: what other processes do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the other tests as another process"]
async fn child() {
    processes::act().await;
}
