//! A run: every mode in turn, each with items of its own.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cache_lock::LockManager;
use example_support::{RedisStats, SENT_FOR_LOCKS, asked_to_end, locks_on};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;

use crate::Error;
use crate::audit::Audit;
use crate::buyers::{self, Answer, Crowd};
use crate::cli::{Mode, Options};
use crate::inventory::{Inventory, LocalInventory};
use crate::model::Item;
use crate::processes::{LockCounts, Process};
use crate::report::{ModeReport, Report, Sale};
use crate::server::{FOR_ONE, Mongo, MongoInventory, mongodb_at};
use crate::shop::{self, Shop};
use crate::worker::{Job, Worker};

/// Cleaning up behind a run that has failed waits no longer for the server.
const CLEAN_UP: Duration = Duration::from_secs(10);

/// A run that is about to start.
#[derive(Debug)]
pub struct Run {
    options: Options,
    /// Unique, and part of all names on shared servers.
    id: String,
    locks: LockManager,
    redis: Option<RedisStats>,
    redis_version: Option<String>,
    mongodb: Option<Mongo>,
}

impl Run {
    /// Connects to what the options name.
    ///
    /// # Errors
    /// [`Error::Unusable`] within five seconds.
    pub async fn prepare(options: Options) -> Result<Self, Error> {
        let (locks, mongodb) = tokio::try_join!(
            async {
                match &options.redis {
                    Some(url) => Ok::<_, Error>(locks_on(url).await?),
                    None => Ok(LockManager::in_memory()),
                }
            },
            async {
                match &options.mongodb {
                    Some(url) => Ok(Some(mongodb_at(url).await?)),
                    None => Ok(None),
                }
            },
        )?;
        let redis = match &options.redis {
            Some(url) => RedisStats::connect(url, SENT_FOR_LOCKS).await,
            None => None,
        };
        let redis_version = match &redis {
            Some(redis) => redis.version().await,
            None => None,
        };
        locks.install()?;
        let id = unique();
        Ok(Self { options, id, locks, redis, redis_version, mongodb })
    }

    /// What is about to happen, and on what.
    #[must_use]
    pub fn header(&self) -> String {
        let Options { buyers, items, stock, think, processes, .. } = &self.options;
        let locks = match &self.options.redis {
            Some(url) => {
                let version = self.redis_version.as_deref().unwrap_or("(version not told)");
                format!("Redis {version} at {url}")
            }
            None => "in the memory of this process; --redis URL for those of a fleet".to_owned(),
        };
        let inventory = match (&self.options.mongodb, &self.mongodb) {
            (Some(url), Some(mongodb)) => {
                format!("MongoDB {} at {url}, database {}", mongodb.version(), self.database())
            }
            _ => format!("in the memory of this process; {FOR_ONE}"),
        };
        let where_from = match processes {
            1 => "this process".to_owned(),
            number => format!("{number} processes"),
        };
        format!(
            "Seckill: {buyers} buyers from {where_from}, items: {items}, pieces of each: {stock}, \
             think time: {think:?}\n\
             Locks: {locks}\n\
             Inventory: {inventory}\n"
        )
    }

    /// Runs the modes and cleans up.
    ///
    /// # Errors
    /// When a server fails so that nothing can be said about the sale, or on Ctrl-C or SIGTERM.
    pub async fn start(self) -> Result<Report, Error> {
        let report = match &self.mongodb {
            Some(mongodb) => {
                self.run_and_discard(MongoInventory::new(mongodb.database(&self.database()))).await
            }
            None => self.run_and_discard(LocalInventory::default()).await,
        };
        self.locks.shutdown().await;
        report
    }

    fn database(&self) -> String {
        format!("seckill_{}", self.id)
    }

    async fn run_and_discard<I: Inventory>(&self, inventory: I) -> Result<Report, Error> {
        let report = tokio::select! {
            report = self.run_modes(&inventory) => report,
            signal = asked_to_end() => Err(signal.into()),
        };
        if !self.options.keep {
            let discarded = tokio::time::timeout(CLEAN_UP, inventory.discard()).await;
            // The run's own error says more than that of cleaning up behind it.
            if let (Ok(_), Ok(Err(error))) = (&report, discarded) {
                return Err(error.into());
            }
        }
        report
    }

    async fn run_modes<I: Inventory>(&self, inventory: &I) -> Result<Report, Error> {
        let mut modes = Vec::new();
        for &mode in self.options.mode.modes() {
            modes.push(self.run_mode(inventory, mode).await?);
        }
        Ok(Report { modes })
    }

    async fn run_mode<I: Inventory>(&self, inventory: &I, mode: Mode) -> Result<ModeReport, Error> {
        let Options { buyers, items, stock, think, stall, .. } = self.options;
        let shop = Shop { inventory: inventory.clone(), think, crash_after: None };
        let items: Vec<String> =
            (1..=items).map(|n| format!("{}-{}-item-{n}", self.id, mode.name())).collect();
        let documents: Vec<Item> =
            items.iter().map(|id| Item::new(id.clone(), stock.into())).collect();
        inventory.add_items(&documents).await?;

        let crowd = Crowd { mode, items, buyers: 0..buyers, stall };
        let commands_before = self.redis_commands().await;
        let Served { answers, wall, locks } = self.serve(&shop, &crowd).await?;
        let commands_after = self.redis_commands().await;
        // A server that was restarted has begun to count anew.
        let commands = commands_after
            .zip(commands_before)
            .and_then(|(after, before)| after.checked_sub(before));

        if mode == Mode::Fenced {
            for item in &crowd.items {
                shop::settle(&shop, item).await?;
            }
        }
        let audit = Audit::of(inventory, &crowd, stock, &answers).await?;
        let processes = locks
            .into_iter()
            .map(|(buyers, locks)| Process::new(&buyers, &answers, locks))
            .collect();
        let sale = Sale { answers, wall, commands, processes };
        Ok(ModeReport::new(mode, buyers, stall, &sale, audit))
    }

    async fn redis_commands(&self) -> Option<u64> {
        self.redis.as_ref()?.count().await
    }

    /// Lets all buyers in at once.
    async fn serve<I: Inventory>(&self, shop: &Shop<I>, crowd: &Crowd) -> Result<Served, Error> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let opened = OnceLock::new();
        let serving = async {
            if self.options.processes > 1 {
                self.serve_by_workers(crowd, &opened, sender).await
            } else {
                let doors = async {
                    opened.get_or_init(Instant::now);
                    Ok(())
                };
                let before = self.locks.stats();
                buyers::serve(shop, crowd, doors, sender).await?;
                let counts = LockCounts::between(before, self.locks.stats());
                Ok(vec![(crowd.buyers.clone(), Some(counts))])
            }
        };
        let collecting = async {
            let bar = progress_bar(crowd);
            let mut answers = Vec::with_capacity(crowd.buyers.len());
            let mut last_answer = None;
            while let Some(answer) = receiver.recv().await {
                bar.inc(1);
                last_answer = Some(Instant::now());
                answers.push(answer);
            }
            bar.finish_and_clear();
            Ok((answers, last_answer))
        };
        let (locks, (answers, last_answer)) = tokio::try_join!(serving, collecting)?;
        let wall = opened.get().zip(last_answer).map(|(from, to)| to.duration_since(*from));
        Ok(Served { answers, wall: wall.unwrap_or_default(), locks })
    }

    async fn serve_by_workers(
        &self,
        crowd: &Crowd,
        opened: &OnceLock<Instant>,
        answers: mpsc::UnboundedSender<Answer>,
    ) -> Result<Vec<LocksOf>, Error> {
        let Options { redis: Some(redis), mongodb: Some(mongodb), processes, .. } = &self.options
        else {
            return Err(Error::Usage("processes share nothing but servers".to_owned()));
        };
        let mut starting = tokio::task::JoinSet::new();
        for index in 0..*processes {
            let job = Job {
                crowd: Crowd { buyers: share(&crowd.buyers, index, *processes), ..crowd.clone() },
                redis: redis.clone(),
                mongodb: mongodb.clone(),
                database: self.database(),
                think: self.options.think,
                crash_after: self.options.crash_after.filter(|_| index == 0),
            };
            starting
                .spawn(async move { Ok((job.crowd.buyers.clone(), Worker::start(&job).await?)) });
        }
        let mut workers = Vec::new();
        while let Some(started) = starting.join_next().await {
            let started: Result<_, Error> = started.map_err(|error| Error::Worker(error.into()))?;
            workers.push(started?);
        }
        opened.get_or_init(Instant::now);
        for (_, worker) in &mut workers {
            worker.open().await;
        }
        let mut at_work = tokio::task::JoinSet::new();
        for (buyers, worker) in workers {
            let answers = answers.clone();
            at_work.spawn(async move { Ok((buyers, worker.finish(answers).await?)) });
        }
        let mut locks = Vec::new();
        while let Some(finished) = at_work.join_next().await {
            let finished: Result<_, Error> =
                finished.map_err(|error| Error::Worker(error.into()))?;
            locks.push(finished?);
        }
        locks.sort_by_key(|(buyers, _)| buyers.start);
        Ok(locks)
    }
}

/// What the buyers were told, and how they came to their locks.
struct Served {
    answers: Vec<Answer>,
    /// From the opening of the doors to the last answer.
    wall: Duration,
    /// In the order of the buyers.
    locks: Vec<LocksOf>,
}

/// The buyers of a process, and their locks; nothing is known of one that has died.
type LocksOf = (Range<u32>, Option<LockCounts>);

/// The part of `buyers` that worker `index` of `count` serves.
fn share(buyers: &Range<u32>, index: u32, count: u32) -> Range<u32> {
    let bound = |index: u32| {
        let number = u64::from(buyers.end - buyers.start) * u64::from(index) / u64::from(count);
        buyers.start + u32::try_from(number).unwrap_or(u32::MAX)
    };
    bound(index)..bound(index + 1)
}

/// The name of a run on servers that it shares with others: the time, and random digits.
fn unique() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let random = RandomState::new().hash_one(std::process::id());
    format!("{:08x}{random:016x}", now.as_secs())
}

/// Draws to standard error, and nothing if that is not a terminal.
fn progress_bar(crowd: &Crowd) -> ProgressBar {
    let bar = ProgressBar::new(crowd.buyers.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{msg:>8} {wide_bar} {pos}/{len} {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(crowd.mode.name());
    bar
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn every_buyer_is_in_one_share() {
        for count in [1, 3, 4, 7, 12] {
            let all: Vec<u32> =
                (0..count).flat_map(|index| share(&(0..10), index, count)).collect();
            assert_eq!(all, (0..10).collect::<Vec<_>>(), "{count} shares");
        }
    }
}
