//! Locks among real processes, which crash and freeze.
//!
//! The children are this same binary: the ignored test [`CHILD`], told by the environment what to do.

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use cache_lock::{LockGuard, LockManager, LockOptions};
use test_support::{RedisServer, wait_until};

use crate::common::role::{self, Dir, Role};

const PATIENT: LockOptions = LockOptions::new().timeout(Duration::from_secs(55));
/// Long enough for a busy machine to renew it, and short enough to wait for its end.
const BRIEF: LockOptions = PATIENT.expire(Duration::from_secs(3));

const CHILD: &str = "processes::child";
const PROCESSES: usize = 4;
const TASKS: usize = 50;
const ROUNDS: usize = 2;

/// Not a test of its own: what the children do.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the other tests as another process"]
async fn child() {
    role::end_with_the_parent();
    let var = |name| env::var(name).expect("set by the parent");
    let dir = PathBuf::from(var("ROLE_DIR"));
    let locks = LockManager::connect(&var("ROLE_REDIS")).await.expect("the server runs");
    match var("ROLE").as_str() {
        "hold" => hold(&locks, &dir).await,
        "hammer" => hammer(&locks, &dir).await,
        role => panic!("there is no role {role}"),
    }
}

/// Holds the lock, polled all the time, and reports how it lost it.
async fn hold(locks: &LockManager, dir: &Path) {
    let (polls, late_polls) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let body = async |lock: &LockGuard| {
        fs::write(dir.join("token"), lock.token().to_string()).expect("it is writable");
        while late_polls.load(Ordering::SeqCst) < 100 {
            polls.fetch_add(1, Ordering::SeqCst);
            late_polls.fetch_add(usize::from(lock.is_lost()), Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let outcome = locks.run("room", &BRIEF, body).await;
    let outcome = match outcome {
        Err(error) if error.is_lost() => "lost".to_owned(),
        other => format!("{other:?}"),
    };
    // One poll may have been under way when the process was frozen.
    let in_time = polls.into_inner() > 0 && late_polls.into_inner() <= 1;
    let report =
        format!("{outcome}, {}", if in_time { "not polled again" } else { "polled again" });
    fs::write(dir.join("report"), report).expect("it is writable");
}

/// Counts under the lock, in a file and in a way that loses counts if two do it at once.
async fn hammer(locks: &LockManager, dir: &Path) {
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (locks, dir) = (locks.clone(), dir.to_owned());
            tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    let count = async |lock: &LockGuard| count(&dir, lock).await;
                    locks.run("room", &PATIENT, count).await.expect("it has time enough");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}

async fn count(dir: &Path, lock: &LockGuard) {
    let file = dir.join("count");
    let before: usize = fs::read_to_string(&file).map_or(0, |text| text.parse().unwrap_or(0));
    tokio::task::yield_now().await;
    let mut tokens = fs::File::options().create(true).append(true).open(dir.join("tokens"));
    let tokens = tokens.as_mut().expect("it is writable");
    writeln!(tokens, "{}", lock.token()).expect("it is writable");
    fs::write(&file, (before + 1).to_string()).expect("it is writable");
}

#[tokio::test(flavor = "multi_thread")]
async fn crashed_holder_frees_lock() {
    let (server, dir) = (RedisServer::start(), Dir::new("crash"));
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    let holder = Role::start(CHILD, "hold", &server, &dir);
    wait_until("the child holds the lock", || !dir.read("token").is_empty());
    // Longer than its lease: it is being renewed.
    let impatient = BRIEF.timeout(Duration::from_secs(4));
    let error = locks.acquire("room", &impatient).await.expect_err("the child holds it");
    assert!(error.is_contended(), "{error}");

    holder.signal("KILL");
    let guard = locks.acquire("room", &BRIEF).await.expect("the child's lease has ended");
    let token: i64 = dir.read("token").parse().expect("a number");
    assert!(guard.token().as_i64() > token);
    assert_eq!(dir.read("report"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_holder_knows_that_it_is_late() {
    let (server, dir) = (RedisServer::start(), Dir::new("freeze"));
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    let holder = Role::start(CHILD, "hold", &server, &dir);
    wait_until("the child holds the lock", || !dir.read("token").is_empty());

    holder.signal("STOP");
    let guard = locks.acquire("room", &BRIEF).await.expect("the child's lease has ended");
    holder.signal("CONT");
    holder.wait();
    assert_eq!(dir.read("report"), "lost, not polled again");
    guard.release().await.expect("the child left it alone");
}

#[test]
fn many_processes_take_turns() {
    let (server, dir) = (RedisServer::start(), Dir::new("hammer"));
    let children: Vec<_> =
        (0..PROCESSES).map(|_| Role::start(CHILD, "hammer", &server, &dir)).collect();
    children.into_iter().for_each(Role::wait);

    let total = PROCESSES * TASKS * ROUNDS;
    assert_eq!(dir.read("count"), total.to_string(), "counts were lost: two were inside");
    let tokens: Vec<i64> =
        dir.read("tokens").lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(tokens.len(), total);
    assert!(tokens.is_sorted_by(|before, after| before < after), "{tokens:?}");
    assert_eq!(server.cli(&["KEYS", "*"]), "room:{room}:fence", "nothing but the fence is left");
}
