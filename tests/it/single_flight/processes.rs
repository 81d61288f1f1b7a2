//! Real processes, of which one dies.

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use cache_lock::{LockManager, LockOptions, SingleFlight, single_flight::Recorded};
use test_support::{RedisServer, wait_until};
use tokio::task::JoinSet;

use super::{HOUR, Work, call, never};
use crate::common::{
    fleet::guarded,
    role::{self, Dir, Role},
};

/// What the children run.
const CHILD: &str = "single_flight::child";
const TASKS: usize = 50;
const PROCESSES: usize = 4;

/// Long enough for a busy machine to renew it, and short enough to wait for its end.
const RECORDED: SingleFlight<Recorded> = SingleFlight::new()
    .lock(LockOptions::new().timeout(Duration::from_secs(55)).expire(Duration::from_secs(2)))
    .record(HOUR);

/// What the children do.
pub(crate) async fn act() {
    role::end_with_the_parent();
    let var = |name| env::var(name).expect("set by the parent");
    let dir = PathBuf::from(var("ROLE_DIR"));
    let locks = LockManager::connect(&var("ROLE_REDIS")).await.expect("the server runs");
    match var("ROLE").as_str() {
        "compute" => compute(&locks, &dir).await,
        "hang" => hang(&locks, &dir).await,
        role => panic!("there is no role {role}"),
    }
}

fn note(dir: &Path, file: &str, text: &str) {
    let file = fs::File::options().create(true).append(true).open(dir.join(file));
    // In one write, or those of several processes mix.
    let line = format!("{text}\n");
    file.expect("it is writable").write_all(line.as_bytes()).expect("it is writable");
}

/// All tasks want the value, which names the process that has computed it. The first attempts fail.
async fn compute(locks: &LockManager, dir: &Path) {
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (locks, dir) = (locks.clone(), dir.to_owned());
        tasks.spawn(async move {
            let compute = || async {
                note(&dir, "attempts", "one");
                tokio::time::sleep(Duration::from_millis(20)).await;
                let attempts = fs::read_to_string(dir.join("attempts")).expect("it is there");
                let process = std::process::id();
                if attempts.lines().count() > 2 { Ok(process) } else { Err(()) }
            };
            let value = locks.single_flight("room", &RECORDED, compute).await;
            let value = value.map_or("error".to_owned(), |process| process.to_string());
            note(&dir, "values", &value);
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.expect("no panic");
    }
    locks.shutdown().await;
}

/// Computes for ever.
async fn hang(locks: &LockManager, dir: &Path) {
    let compute = || async {
        note(dir, "hangs", "yes");
        never::<Result<usize, ()>>().await
    };
    let _ = locks.single_flight("room", &RECORDED, compute).await;
}

#[test]
fn fleet_computes_once_and_only_failed_callers_get_errors() {
    let (server, dir) = (RedisServer::start(), Dir::new("flight"));
    let children: Vec<_> =
        (0..PROCESSES).map(|_| Role::start(CHILD, "compute", &server, &dir)).collect();
    children.into_iter().for_each(Role::wait);
    let (attempts, values) = (dir.read("attempts"), dir.read("values"));
    assert_eq!(attempts.lines().count(), 3, "two fail, one succeeds");
    let (errors, values): (Vec<_>, Vec<_>) = values.lines().partition(|value| *value == "error");
    assert_eq!((errors.len(), values.len()), (2, PROCESSES * TASKS - 2));
    assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_process_computes_when_one_is_killed() {
    let (server, dir) = (RedisServer::start(), Dir::new("flight-kill"));
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    let child = Role::start(CHILD, "hang", &server, &dir);
    wait_until("the child computes", || !dir.read("hangs").is_empty());
    let work = Work::that_is_done();
    let waiting = tokio::spawn(call(locks.clone(), RECORDED, work.clone()));
    child.signal("KILL");
    let value = guarded(waiting).await.expect("no panic");
    assert_eq!(value.ok(), Some(1));
}
