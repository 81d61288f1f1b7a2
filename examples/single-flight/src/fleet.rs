//! A run: the fleet starts, and what came of it is looked at.

use std::time::{Duration, Instant};

use cache_lock::{LockManager, MemoryStore};
use example_support::{RedisStats, SCRIPTS, ServerUrl, asked_to_end, locks_on, mongodb_at};
use mongodb::bson::oid::ObjectId;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Error;
use crate::cli::Options;
use crate::database::{Database, LocalDatabase, MongoDatabase};
use crate::report::Report;
use crate::startup::{Faults, Process};
use crate::tasks::{self, Served};
use crate::worker::{Job, Worker};

/// Cleaning up behind a run that has failed waits no longer for the server.
const CLEAN_UP: Duration = Duration::from_secs(10);

/// A fleet that is about to start.
#[derive(Debug)]
pub struct Fleet {
    options: Options,
    /// Unique, and part of all names on shared servers.
    run: String,
    servers: Option<Servers>,
}

#[derive(Debug)]
struct Servers {
    redis: ServerUrl,
    redis_version: Option<String>,
    stats: Option<RedisStats>,
    mongodb: ServerUrl,
    mongodb_version: String,
    database: MongoDatabase,
}

/// What the tasks of each process met, in the order of the processes; nothing is known of those of one
/// that was killed.
pub(crate) type ByProcess = Vec<Option<Vec<Served>>>;

impl Fleet {
    /// Connects to what the options name.
    ///
    /// # Errors
    /// [`Error::Unusable`] within five seconds.
    pub async fn prepare(options: Options) -> Result<Self, Error> {
        let run = ObjectId::new().to_hex();
        let mut servers = None;
        if let (Some(redis), Some(mongodb)) = (&options.redis, &options.mongodb) {
            let name = format!("single_flight_{run}");
            let (locks, mongo) = tokio::try_join!(locks_on(redis), mongodb_at(mongodb))?;
            // It was asked for to see whether the server can be used.
            drop(locks);
            let stats = RedisStats::connect(redis, SCRIPTS).await;
            let redis_version = match &stats {
                Some(stats) => stats.version().await,
                None => None,
            };
            let (redis, mongodb) = (redis.clone(), mongodb.clone());
            let mongodb_version = mongo.version().to_owned();
            let database = MongoDatabase::new(mongo, &name);
            servers =
                Some(Servers { redis, redis_version, stats, mongodb, mongodb_version, database });
        }
        Ok(Self { options, run, servers })
    }

    /// What is about to happen, and on what.
    #[must_use]
    pub fn header(&self) -> String {
        let Options { processes, tasks, failures, kill, .. } = &self.options;
        let on = match &self.servers {
            Some(servers) => format!(
                "Locks: Redis {} at {}\nDatabase: MongoDB {} at {}, {}\n",
                servers.redis_version.as_deref().unwrap_or("(version not told)"),
                servers.redis,
                servers.mongodb_version,
                servers.mongodb,
                servers.database.name(),
            ),
            None => {
                "Locks and database: in the memory of this process, in which each process of the \
                     fleet is a manager; --redis URL --mongodb URL for real ones\n"
                    .to_owned()
            }
        };
        let kill = if *kill { ", and the process that makes the next one is killed" } else { "" };
        format!(
            "Start of a fleet: processes: {processes}, tasks of each: {tasks}\n\
             Attempts at the migration that fail: {failures}{kill}\n{on}"
        )
    }

    /// Starts the fleet, waits for its tasks, and cleans up.
    ///
    /// # Errors
    /// When a server fails so that nothing can be said, or on Ctrl-C or SIGTERM.
    pub async fn start(self) -> Result<Report, Error> {
        match &self.servers {
            Some(servers) => self.start_on(&servers.database, self.by_workers(servers)).await,
            None => {
                let database = LocalDatabase::default();
                self.start_on(&database, self.in_this_process(&database)).await
            }
        }
    }

    async fn start_on<D: Database>(
        &self,
        database: &D,
        starting: impl Future<Output = Result<(ByProcess, Duration), Error>>,
    ) -> Result<Report, Error> {
        let observed = async {
            let before = self.scripts().await;
            let (served, wall) = starting.await?;
            let scripts = self.scripts().await.zip(before);
            // A server that was restarted has begun to count anew.
            let scripts = scripts.and_then(|(after, before)| after.checked_sub(before));
            let tally = database.tally().await?;
            Ok(Report::new(&self.options, &served, wall, scripts, tally))
        };
        let report = tokio::select! {
            report = observed => report,
            signal = asked_to_end() => Err(signal.into()),
        };
        if !self.options.keep {
            let discarded = tokio::time::timeout(CLEAN_UP, database.discard()).await;
            // The run's own error says more than that of cleaning up behind it.
            if let (Ok(_), Ok(Err(error))) = (&report, discarded) {
                return Err(error.into());
            }
        }
        report
    }

    async fn scripts(&self) -> Option<u64> {
        self.servers.as_ref()?.stats.as_ref()?.count().await
    }

    fn faults(&self) -> Faults {
        let Options { failures, kill, .. } = self.options;
        Faults { failures, hang: kill, step: self.options.step_time() }
    }

    /// One manager stands for each process. They share what processes would share.
    async fn in_this_process(
        &self,
        database: &LocalDatabase,
    ) -> Result<(ByProcess, Duration), Error> {
        let store = MemoryStore::new();
        let opened = Instant::now();
        let mut starting = JoinSet::new();
        for number in 1..=self.options.processes {
            let process = Process {
                number,
                locks: LockManager::builder().in_memory(store.clone())?,
                database: database.clone(),
                run: self.run.clone(),
                faults: self.faults(),
                half_way: watch::Sender::new(false),
            };
            let tasks = self.tasks_of(number);
            starting.spawn(async move {
                let served = tasks::run(&process, tasks).await;
                process.locks.shutdown().await;
                (number, Some(served))
            });
        }
        Ok((in_order(starting.join_all().await), opened.elapsed()))
    }

    async fn by_workers(&self, servers: &Servers) -> Result<(ByProcess, Duration), Error> {
        let jobs = (1..=self.options.processes).map(|number| Job {
            number,
            tasks: self.tasks_of(number),
            faults: self.faults(),
            redis: servers.redis.clone(),
            mongodb: servers.mongodb.clone(),
            database: servers.database.name().to_owned(),
            run: self.run.clone(),
        });
        let mut starting = JoinSet::new();
        for job in jobs {
            starting
                .spawn(async move { Worker::start(&job).await.map(|worker| (job.number, worker)) });
        }
        let mut workers = starting.join_all().await.into_iter().collect::<Result<Vec<_>, _>>()?;
        let opened = Instant::now();
        for (_, worker) in &mut workers {
            worker.open().await;
        }
        let mut at_work = JoinSet::new();
        for (number, worker) in workers {
            at_work.spawn(async move { worker.finish().await.map(|served| (number, served)) });
        }
        let served = at_work.join_all().await.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok((in_order(served), opened.elapsed()))
    }

    /// The tasks of a process, by their numbers in the fleet.
    fn tasks_of(&self, process: u32) -> std::ops::Range<u32> {
        let tasks = self.options.tasks;
        (process - 1) * tasks..process * tasks
    }
}

fn in_order(mut served: Vec<(u32, Option<Vec<Served>>)>) -> ByProcess {
    served.sort_by_key(|(number, _)| *number);
    served.into_iter().map(|(_, served)| served).collect()
}
