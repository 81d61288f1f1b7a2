//! A small hostel for tests.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};

use cache_lock::LockManager;
use example_support::mongodb_at;
use hostel::audit::Snapshot;
use hostel::hostel::{Hostel, Reached, Step};
use hostel::model::{Room, Student};
use hostel::provider::{Entry, LocalProvider, MongoProvider, Provider, ProviderError};
use hostel::store::{LocalStore, MongoStore, Store};
use test_support::MongoServer;
use tokio::sync::mpsc;

/// A hostel inside this process: room 1 has one bed, room 2 has two; Ann, Bob and Cy are enrolled.
pub(crate) async fn local() -> Hostel<LocalStore, LocalProvider> {
    furnished(LocalStore::default(), LocalProvider::default()).await
}

/// Runs a test on the same hostel in MongoDB.
pub(crate) async fn in_mongodb<F>(test: impl FnOnce(Hostel<MongoStore, MongoProvider>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let url = MongoServer::start().uri().to_owned().into();
    let mongodb = mongodb_at(&url).await.expect("it is reachable");
    let database = mongodb.database(&format!("hostel_test_{}_{number}", std::process::id()));
    let store = MongoStore::open(&database).await.expect("it answers");
    let hostel = furnished(store, MongoProvider::new(&database)).await;
    // In a task of its own, so that the database is dropped if it panics.
    let outcome = tokio::spawn(test(hostel)).await;
    database.drop().await.expect("it answers");
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic.into_panic());
    }
}

async fn furnished<S: Store, P: Provider>(store: S, provider: P) -> Hostel<S, P> {
    let rooms = [Room::new(1, 1, 900), Room::new(2, 2, 1000)];
    store.add_rooms(&rooms).await.expect("it is there");
    let students = ["ann", "bob", "cy"].map(|id| Student::new(id.to_owned()));
    store.enrol(&students).await.expect("it is there");
    let (name, locks) = ("test".to_owned(), LockManager::in_memory());
    Hostel { name, locks, store, provider, steps: None }
}

/// The same hostel, as a process sees it that has locks of its own: the two do not exclude each other,
/// as if Redis had forgotten everything.
pub(crate) fn without_exclusion<S: Store, P: Provider>(hostel: &Hostel<S, P>) -> Hostel<S, P> {
    Hostel { locks: LockManager::in_memory(), steps: None, ..hostel.clone() }
}

/// The same hostel, which reports its steps.
pub(crate) fn step_by_step<S: Store, P: Provider>(
    hostel: &Hostel<S, P>,
) -> (Hostel<S, P>, mpsc::UnboundedReceiver<Reached>) {
    let (steps, reached) = mpsc::unbounded_channel();
    (Hostel { steps: Some(steps), ..hostel.clone() }, reached)
}

/// Lets `call` go on until it has done the step with this index, and returns that step and what makes
/// the call go on; `None` if the call ends before.
pub(crate) async fn stop_at<F: Future + Unpin>(
    call: &mut F,
    reached: &mut mpsc::UnboundedReceiver<Reached>,
    index: usize,
) -> Result<Reached, F::Output> {
    for _ in 0..index {
        let step = tokio::select! {
            biased;
            outcome = &mut *call => return Err(outcome),
            step = reached.recv() => step.expect("the hostel is there"),
        };
        let _ = step.go_on.send(());
    }
    tokio::select! {
        biased;
        outcome = call => Err(outcome),
        step = reached.recv() => Ok(step.expect("the hostel is there")),
    }
}

/// The steps that `call` does.
pub(crate) async fn steps_of<F: Future>(
    call: F,
    reached: &mut mpsc::UnboundedReceiver<Reached>,
) -> Vec<Step> {
    let mut call = Box::pin(call);
    let mut steps = Vec::new();
    while let Ok(step) = stop_at(&mut call, reached, 0).await {
        steps.push(step.step);
        let _ = step.go_on.send(());
    }
    steps
}

/// Who has a bed in each room, if all is as it must be.
#[track_caller]
pub(crate) fn sound(snapshot: &Snapshot) -> Vec<(u32, Vec<String>)> {
    assert_eq!(snapshot.audit().violations, [""; 0], "{snapshot:#?}");
    snapshot.rooms.iter().map(|room| (room.number, room.occupants.clone())).collect()
}

/// What is there.
pub(crate) async fn look<S: Store, P: Provider>(hostel: &Hostel<S, P>) -> Snapshot {
    Snapshot::read(&hostel.store, &hostel.provider).await.expect("it can be read")
}

/// The room in which `student` has a bed, if all is as it must be.
pub(crate) async fn room_of<S: Store, P: Provider>(
    hostel: &Hostel<S, P>,
    student: &str,
) -> Option<u32> {
    let rooms = sound(&look(hostel).await);
    let has = |occupants: &[String]| occupants.iter().any(|occupant| occupant == student);
    rooms.into_iter().find(|(_, occupants)| has(occupants)).map(|(room, _)| room)
}

/// What an odd provider does to an authorisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Oddity {
    /// It says no.
    Declines,
    /// It is carried out, and nobody is told.
    LosesTheAnswer,
    /// It never gets there.
    LosesTheRequest,
}

/// A provider that treats each authorisation in the same way.
#[derive(Debug, Clone)]
pub(crate) struct Odd<P>(pub(crate) P, pub(crate) Oddity);

impl<P: Provider> Provider for Odd<P> {
    async fn authorise(&self, key: &str, amount: i64) -> Result<(), ProviderError> {
        match self.1 {
            Oddity::Declines => Err(ProviderError::Declined),
            Oddity::LosesTheRequest => Err(ProviderError::TimedOut),
            Oddity::LosesTheAnswer => {
                self.0.authorise(key, amount).await?;
                Err(ProviderError::TimedOut)
            }
        }
    }

    async fn capture(&self, key: &str) -> Result<(), ProviderError> {
        self.0.capture(key).await
    }

    async fn refund(&self, key: &str) -> Result<(), ProviderError> {
        self.0.refund(key).await
    }

    async fn books(&self) -> Result<Vec<Entry>, ProviderError> {
        self.0.books().await
    }
}
