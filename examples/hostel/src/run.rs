//! A run: students race, what is left is recovered, and everything is counted.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use cache_lock::LockManager;
use example_support::{Mongo, asked_to_end, locks_on, mongodb_at};
use indicatif::{ProgressBar, ProgressStyle};
use mongodb::Database;
use mongodb::bson::oid::ObjectId;
use tokio::sync::mpsc;

use crate::Error;
use crate::audit::{Audit, Snapshot};
use crate::cli::Options;
use crate::fleet::{self, Fleet};
use crate::hostel::Hostel;
use crate::model::Room;
use crate::provider::{LocalProvider, MongoProvider, MoodyProvider, Provider};
use crate::report::Report;
use crate::settle::{Recovery, Settled};
use crate::store::{LocalStore, MongoStore, Store};
use crate::visits::{self, Answer, Cast, Knowledge, Plan};
use crate::worker::Job;

/// Cleaning up behind a run that has failed waits no longer for the server.
const CLEAN_UP: Duration = Duration::from_secs(10);

/// How often a recovery begins again for those whom it could not settle.
const PASSES: u32 = 20;

/// Runs that are about to start.
#[derive(Debug)]
pub struct Runs {
    options: Options,
    locks: LockManager,
    mongodb: Option<Mongo>,
    /// Unique, and part of all names on shared servers.
    id: String,
}

impl Runs {
    /// Connects to what the options name.
    ///
    /// # Errors
    /// [`Error::Unusable`] within five seconds.
    pub async fn prepare(options: Options) -> Result<Self, Error> {
        let (locks, mongodb) = tokio::try_join!(
            async {
                match &options.redis {
                    Some(url) => locks_on(url).await,
                    None => Ok(LockManager::in_memory()),
                }
            },
            async {
                match &options.mongodb {
                    Some(url) => mongodb_at(url).await.map(Some),
                    None => Ok(None),
                }
            },
        )?;
        Ok(Self { options, locks, mongodb, id: ObjectId::new().to_hex() })
    }

    /// What is about to happen, and on what.
    #[must_use]
    pub fn header(&self) -> String {
        let Options { students, rooms, capacity, chaos, processes, kill_every, seed, .. } =
            &self.options;
        let where_from = match (processes, kill_every) {
            (1, _) => "this process".to_owned(),
            (number, None) => format!("{number} processes"),
            (number, Some(pause)) => {
                format!("{number} processes, of which one is killed every {pause:?}")
            }
        };
        let locks = match &self.options.redis {
            Some(url) => format!("Redis at {url}"),
            None => "in the memory of this process; --redis URL for those of a fleet".to_owned(),
        };
        let documents = match (&self.options.mongodb, &self.mongodb) {
            (Some(url), Some(mongodb)) => {
                format!("MongoDB {} at {url}, database {}", mongodb.version(), self.database(1))
            }
            _ => "in the memory of this process; --mongodb URL for a database".to_owned(),
        };
        format!(
            "Hostel: {students} students from {where_from}, rooms: {rooms}, beds in each: {capacity}, \
             chaos: {chaos}, seed: {seed}\nLocks: {locks}\nDocuments: {documents}\n"
        )
    }

    /// How many runs there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.options.runs
    }

    /// Runs once, and cleans up; the first run has number 1.
    ///
    /// # Errors
    /// When a server fails so that nothing can be said about the run, or on Ctrl-C or SIGTERM.
    pub async fn run(&self, number: u32) -> Result<Report, Error> {
        let Some(mongodb) = &self.mongodb else {
            return self
                .until_told(self.run_in(number, LocalStore::default(), LocalProvider::default()))
                .await;
        };
        let database = mongodb.database(&self.database(number));
        let report = self
            .until_told(async {
                let store = MongoStore::open(&database).await?;
                self.run_in(number, store, MongoProvider::new(&database)).await
            })
            .await;
        if self.options.database.is_none() {
            let dropped = tokio::time::timeout(CLEAN_UP, drop_for_good(&database, report.is_ok()));
            // The run's own error says more than that of cleaning up behind it.
            if let (Ok(_), Ok(Err(error))) = (&report, dropped.await) {
                return Err(error.into());
            }
        }
        report
    }

    /// Settles what a crash left in the database.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub async fn recover(&self) -> Result<Recovery, Error> {
        let Some(mongodb) = &self.mongodb else {
            return Err(Error::Usage("recover needs a database".to_owned()));
        };
        let database = mongodb.database(&self.database(1));
        self.until_told(async {
            let store = MongoStore::open(&database).await?;
            self.expect_hostel(&store).await?;
            recover_all(&self.hostel(1, store, MongoProvider::new(&database))).await
        })
        .await
    }

    /// Checks what is in the database. Nobody may be at work.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub async fn check(&self) -> Result<Audit, Error> {
        let Some(mongodb) = &self.mongodb else {
            return Err(Error::Usage("check needs a database".to_owned()));
        };
        let database = mongodb.database(&self.database(1));
        self.until_told(async {
            let store = MongoStore::open(&database).await?;
            self.expect_hostel(&store).await?;
            Ok(Snapshot::read(&store, &MongoProvider::new(&database)).await?.audit())
        })
        .await
    }

    /// An empty database agrees with itself, but is not what was meant.
    async fn expect_hostel(&self, store: &impl Store) -> Result<(), Error> {
        if store.rooms().await?.is_empty() {
            let name = self.database(1);
            return Err(Error::Usage(format!("there is no hostel in the database {name}")));
        }
        Ok(())
    }

    /// Releases what is held.
    pub async fn end(self) {
        self.locks.shutdown().await;
    }

    async fn until_told<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            outcome = work => outcome,
            signal = asked_to_end() => Err(signal.into()),
        }
    }

    fn database(&self, number: u32) -> String {
        let own = || format!("hostel_{}_{number}", self.id);
        self.options.database.clone().unwrap_or_else(own)
    }

    fn hostel<S, P>(&self, number: u32, store: S, provider: P) -> Hostel<S, P> {
        let (name, locks) = (self.database(number), self.locks.clone());
        Hostel { name, locks, store, provider, steps: None }
    }

    async fn run_in<S: Store, P: Provider>(
        &self,
        number: u32,
        store: S,
        provider: P,
    ) -> Result<Report, Error> {
        let Options { students, rooms, capacity, chaos, payment_time, .. } = self.options;
        let seed = self.options.seed.wrapping_add(u64::from(number - 1));
        let plan = Plan { rooms, chaos, seed, payment_time };
        let provider = MoodyProvider::new(provider, plan.mood(), seed);
        let hostel = self.hostel(number, store, provider);

        let before = recover_all(&hostel).await?;
        let mut cast = Cast::new(students, &plan);
        if self.options.database.is_some() {
            // Whoever has been here before knows more than is known of them here.
            cast.visits.iter_mut().for_each(|visit| visit.alone = false);
        }
        let documents: Vec<Room> =
            (1..=rooms).map(|number| Room::new(number, capacity, price(number))).collect();
        hostel.store.add_rooms(&documents).await?;
        if !cast.enrolled.is_empty() {
            hostel.store.enrol(&cast.enrolled).await?;
        }

        let Raced { answers, fleet, expelled, wall } =
            self.race(number, &hostel, plan, &cast).await?;
        let after = recover_all(&hostel).await?;
        let snapshot = Snapshot::read(&hostel.store, &hostel.provider).await?;
        let mut audit = snapshot.audit();
        for (student, why) in before.left.into_iter().chain(after.left) {
            audit.violations.push(format!("{student} cannot be settled: {why}"));
        }
        audit.violations.extend(broken_promises(&snapshot, &answers));

        let mut report = Report {
            seed,
            wall_ms: wall.as_millis().try_into().unwrap_or(u64::MAX),
            visits: answers.len() as u64,
            expelled,
            killed: fleet.killed,
            begun_again: fleet.begun_again,
            recovered_before: before.settled,
            recovered_meanwhile: fleet.recovered,
            recovered_after: after.settled,
            audit,
            ..Report::default()
        };
        for label in answers.into_iter().flat_map(|answer| answer.calls) {
            *report.calls.entry(label).or_default() += 1;
        }
        Ok(report)
    }

    /// Lets all students in at once, while some are expelled.
    async fn race<S: Store, P: Provider>(
        &self,
        number: u32,
        hostel: &Hostel<S, P>,
        plan: Plan,
        cast: &Cast,
    ) -> Result<Raced, Error> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let Options { processes, kill_every, redis, mongodb, .. } = &self.options;
        let visits = cast.visits.clone();
        let started = Instant::now();
        let serving = async {
            let fleet = match (processes, redis, mongodb) {
                (1, ..) => {
                    visits::serve(hostel, plan, visits, &sender).await;
                    Fleet::default()
                }
                (_, Some(redis), Some(mongodb)) => {
                    let (redis, mongodb) = (redis.clone(), mongodb.clone());
                    let database = self.database(number);
                    let crash_after = self.options.crash_after;
                    let job = Job {
                        plan,
                        visits,
                        redis,
                        mongodb,
                        database,
                        mood_seed: plan.seed,
                        crash_after,
                    };
                    fleet::race(&job, *processes, *kill_every, &sender).await?
                }
                _ => {
                    return Err(Error::Usage("processes share nothing but servers".to_owned()));
                }
            };
            drop(sender);
            Ok::<_, Error>((fleet, started.elapsed()))
        };
        let collecting = async {
            let bar = progress_bar(cast.visits.len() as u64, number, self.options.runs);
            let mut answers = Vec::with_capacity(cast.visits.len());
            while let Some(answer) = receiver.recv().await {
                bar.inc(1);
                answers.push(answer);
            }
            bar.finish_and_clear();
            Ok(answers)
        };
        let expelling = async { Ok(visits::expel(&hostel.store, &plan, &cast.expelled).await?) };
        let ((fleet, wall), answers, expelled) = tokio::try_join!(serving, collecting, expelling)?;
        Ok(Raced { answers, fleet, expelled, wall })
    }
}

/// Drops the database. If the run was given up, its processes were killed just now, and what they had
/// sent may still arrive, which would bring the database back.
async fn drop_for_good(database: &Database, is_over: bool) -> mongodb::error::Result<()> {
    loop {
        database.drop().await?;
        if is_over {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let there = database.client().list_database_names().await?;
        if !there.iter().any(|name| name == database.name()) {
            return Ok(());
        }
    }
}

struct Raced {
    answers: Vec<Answer>,
    fleet: Fleet,
    expelled: u64,
    wall: Duration,
}

/// Recovers until there is nobody left who could not be settled, which a provider without an answer
/// can delay.
async fn recover_all<S: Store, P: Provider>(hostel: &Hostel<S, P>) -> Result<Recovery, Error> {
    let mut settled = Settled::default();
    let mut pass = 1;
    loop {
        let recovery = hostel.recover().await?;
        settled += recovery.settled;
        if recovery.left.is_empty() || pass == PASSES {
            return Ok(Recovery { settled, left: recovery.left });
        }
        pass += 1;
    }
}

/// What a student who has nobody else to act for him was told, and what is not so.
fn broken_promises(snapshot: &Snapshot, answers: &[Answer]) -> Vec<String> {
    let rooms: HashMap<&str, Option<u32>> =
        snapshot.students.iter().map(|student| (student.id.as_str(), student.room)).collect();
    let mut broken = Vec::new();
    for Answer { student, knows, .. } in answers {
        let told = match knows {
            Knowledge::Bed(room) => Some(*room),
            Knowledge::NoBed => None,
            Knowledge::Nothing => continue,
        };
        let found = rooms.get(student.as_str()).copied().flatten();
        if told != found {
            let of =
                |room: Option<u32>| room.map_or("no bed".to_owned(), |room| format!("room {room}"));
            broken.push(format!("{student} was told {}, and has {}", of(told), of(found)));
        }
    }
    broken
}

/// In cents: what a bed costs differs, so that money shows which beds were paid for.
fn price(room: u32) -> i64 {
    900 + 50 * i64::from(room % 7)
}

/// Draws to standard error, and nothing if that is not a terminal.
fn progress_bar(visits: u64, number: u32, runs: u32) -> ProgressBar {
    let bar = ProgressBar::new(visits);
    if let Ok(style) = ProgressStyle::with_template("{msg:>10} {wide_bar} {pos}/{len} {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(if runs == 1 { "visits".to_owned() } else { format!("run {number}/{runs}") });
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Student;

    #[test]
    fn a_promise_that_is_not_kept_is_found() {
        let student = Student { room: Some(2), ..Student::new("ann".to_owned()) };
        let snapshot = Snapshot { students: vec![student], ..Snapshot::default() };
        let told = |student: &str, knows| {
            let answer =
                Answer { number: 1, student: student.to_owned(), calls: Vec::new(), knows };
            broken_promises(&snapshot, &[answer])
        };
        assert_eq!(told("ann", Knowledge::Bed(2)), [""; 0]);
        assert_eq!(told("ann", Knowledge::Nothing), [""; 0]);
        assert_eq!(told("gone", Knowledge::NoBed), [""; 0]);
        assert_eq!(told("ann", Knowledge::Bed(1)), ["ann was told room 1, and has room 2"]);
        assert_eq!(told("ann", Knowledge::NoBed), ["ann was told no bed, and has room 2"]);
        assert_eq!(told("gone", Knowledge::Bed(2)), ["gone was told room 2, and has no bed"]);
    }
}
