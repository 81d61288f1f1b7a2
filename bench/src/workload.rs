//! What is done with them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use test_support::RedisServer;
use tokio::{sync::Barrier, task::JoinSet};

use crate::{Error, implementation::Implementation};

/// One run of a workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// For each acquisition, or for all of them.
    pub(crate) time: Duration,
    /// Sent for each acquisition.
    pub(crate) commands: f64,
    /// No two callers were in the section at once.
    pub(crate) exclusive: bool,
}

/// Acquires and releases again and again, with nobody else about.
pub(crate) async fn uncontended(
    implementation: &Implementation,
    server: &RedisServer,
    cycles: u32,
) -> Result<Sample, Error> {
    // Connections are opened and scripts loaded before the clock starts.
    implementation.section(0, "warm-up", async || {}).await?;
    let before = implementation.sent(server);
    let start = Instant::now();
    for cycle in 0..cycles {
        implementation.section(cycle % 16, "owner", async || {}).await?;
    }
    let time = start.elapsed() / cycles;
    Ok(Sample {
        time,
        commands: per(implementation.sent(server) - before, cycles),
        exclusive: true,
    })
}

/// Many callers that come at the same moment.
pub(crate) struct Contended {
    pub(crate) callers: u32,
}

impl Contended {
    pub(crate) async fn run(
        &self,
        implementation: &Implementation,
        server: &RedisServer,
    ) -> Result<Sample, Error> {
        let doors = Arc::new(Barrier::new(self.callers as usize + 1));
        let sections = Arc::new([Section::default(), Section::default()]);
        let before = implementation.sent(server);
        let mut callers = JoinSet::new();
        for caller in 0..self.callers {
            let (doors, sections) = (Arc::clone(&doors), Arc::clone(&sections));
            let implementation = implementation.clone();
            callers.spawn(async move {
                doors.wait().await;
                let section = &sections[caller as usize % 2];
                let owner = caller.to_string();
                implementation.section(caller % 2, &owner, async || section.pass().await).await
            });
        }
        doors.wait().await;
        let start = Instant::now();
        while let Some(done) = callers.join_next().await {
            done??;
        }
        let time = start.elapsed();
        let commands = per(implementation.sent(server) - before, self.callers);
        let exclusive = sections.iter().all(|section| !section.crowded.load(Ordering::SeqCst));
        Ok(Sample { time, commands, exclusive })
    }
}

/// Notices two callers at once.
#[derive(Default)]
struct Section {
    inside: AtomicU32,
    crowded: AtomicBool,
}

impl Section {
    async fn pass(&self) {
        if self.inside.fetch_add(1, Ordering::SeqCst) > 0 {
            self.crowded.store(true, Ordering::SeqCst);
        }
        tokio::task::yield_now().await;
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

fn per(commands: u64, acquisitions: u32) -> f64 {
    commands as f64 / f64::from(acquisitions)
}
