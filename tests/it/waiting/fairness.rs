//! Processes that want one lock all the time have it for about the same number of sections.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cache_lock::LockManager;
use test_support::RedisServer;

use super::{
    LONG, SECOND,
    crew::{Log, Member, Work, history},
};
use crate::common::fleet::guarded;

/// The part of each process, as a multiple of what would be just.
fn shares(processes: usize, callers: usize) -> Vec<f64> {
    let (server, log) = (RedisServer::start(), Log::new(&format!("fairness-{processes}")));
    let mut members: Vec<_> = (0..processes).map(|_| Member::start(&server, &log)).collect();
    let work =
        Work { callers, sections: 0, expire: 10 * SECOND, timeout: 60 * SECOND, impatient: 0 };
    members.iter_mut().for_each(|member| member.begin(work));
    std::thread::sleep(Duration::from_millis(1500));
    members.iter_mut().for_each(|member| member.tell("end"));
    let reports: Vec<_> = members.iter_mut().map(Member::report).collect();
    let longest = reports.iter().map(|report| report.longest).max().expect("there are some");
    let sections: Vec<_> = reports.iter().map(|report| report.sections).collect();
    eprintln!("{sections:?} sections, the longest wait was {longest:?}");
    history(&log.read());
    let total: u64 = sections.iter().sum();
    sections.iter().map(|&own| own as f64 * processes as f64 / total as f64).collect()
}

/// What else runs on the machine may keep a process from its turns in some runs. A lock that is
/// unfair is so in each.
const RUNS: usize = 5;

#[test]
fn two_and_four_processes_have_their_shares() {
    for processes in [2, 4] {
        let just = |shares: &[f64]| shares.iter().all(|share| (0.8..1.2).contains(share));
        assert!((0..RUNS).any(|_| just(&shares(processes, 20))), "of {processes} processes");
    }
}

#[test]
#[ignore = "takes long; run in release mode"]
fn shares_in_ten_runs() {
    for processes in [2, 4] {
        for callers in [1, 20, 250] {
            let runs: Vec<_> = (0..10).map(|_| shares(processes, callers)).collect();
            let all = || runs.iter().flatten().copied();
            let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
            eprintln!(
                "{processes} processes, {callers} callers: {least:.3} to {most:.3}, {runs:.2?}"
            );
        }
    }
}

/// Managers of one caller each, which want the lock again as soon as they have released it, for
/// sections so long that the lock is left free after each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caller_that_comes_again_at_once_leaves_turns_to_others() {
    const SECTIONS: usize = 16;
    let server = RedisServer::start();
    let holders = Arc::new(Mutex::new(Vec::new()));
    let mut callers = Vec::new();
    for id in 0..2 {
        let locks = LockManager::connect(&server.url()).await.expect("the server runs");
        let holders = Arc::clone(&holders);
        callers.push(tokio::spawn(async move {
            loop {
                let guard = locks.acquire("room", &LONG).await.expect("it gets its turn");
                if holders.lock().expect("no panic").len() == SECTIONS {
                    return guard.release().await.expect("the server answers");
                }
                holders.lock().expect("no panic").push(id);
                tokio::time::sleep(SECOND * 3 / 10).await;
                guard.release().await.expect("the server answers");
            }
        }));
    }
    for caller in callers {
        guarded(caller).await.expect("no panic");
    }
    let holders = holders.lock().expect("no panic");
    let twice = holders.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!(twice < SECTIONS / 3, "{holders:?}");
}
