//! G12: lock libraries of other languages and ours exclude each other on one key.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use cache_lock::{LockGuard, LockManager, LockOptions, ReleaseOutcome};
use test_support::RedisServer;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/interop/redis_py.py");
/// How redlock libraries release, in all languages.
const REDLOCK_RELEASE: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then \
                               return redis.call('del', KEYS[1]) else return 0 end";

const ONCE: LockOptions = LockOptions::new().timeout(Duration::ZERO);
const PATIENT: LockOptions = LockOptions::new().timeout(Duration::from_secs(55));

async fn start() -> (RedisServer, LockManager) {
    let server = RedisServer::start();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    (server, locks)
}

/// A Python that has redis-py; Debian's module is seen by Debian's interpreter alone. Where there
/// is none, the test is left out, but not silently in continuous integration.
fn python() -> Option<&'static str> {
    let has_redis = |python: &&str| {
        let mut import = Command::new(python);
        let import = import.args(["-c", "import redis"]).stderr(Stdio::null());
        import.status().is_ok_and(|status| status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has_redis);
    if found.is_none() {
        assert!(env::var_os("CI").is_none(), "redis-py is missing");
        eprintln!("left out: redis-py is missing (Debian: python3-redis)");
    }
    found
}

/// A Python process, which ends with its owner.
struct RedisPy(Child);

impl RedisPy {
    fn start(python: &str, server: &RedisServer, arguments: &[&str]) -> Self {
        let child = Command::new(python)
            .args([SCRIPT, &server.port().to_string(), "room:42"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it ran once");
        Self(child)
    }

    /// The next line that it prints.
    fn line(&mut self) -> String {
        let mut line = String::new();
        let output = self.0.stdout.as_mut().expect("it is a pipe");
        BufReader::new(output).read_line(&mut line).expect("it prints text");
        line.trim().to_owned()
    }

    fn wait(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().expect("it is ours").success(), "redis-py failed");
    }
}

impl Drop for RedisPy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn try_from_python(python: &str, server: &RedisServer) -> String {
    let mut tried = RedisPy::start(python, server, &["try"]);
    let line = tried.line();
    tried.wait();
    line
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_py_sees_our_lock_and_we_see_its() {
    let Some(python) = python() else { return };
    let (server, locks) = start().await;
    let guard = locks.acquire("room:42", &ONCE).await.expect("it is free");
    assert_eq!(try_from_python(python, &server), "False");
    assert_eq!(guard.release().await.ok(), Some(ReleaseOutcome::Released));

    let mut holder = RedisPy::start(python, &server, &["hold"]);
    assert_eq!(holder.line(), "held");
    let record = server.cli(&["GET", "room:42"]);
    let error = locks.acquire("room:42", &ONCE).await.expect_err("redis-py holds it");
    assert!(error.is_contended(), "{error}");
    assert_eq!(server.cli(&["GET", "room:42"]), record);
    holder.wait();
    let guard = locks.acquire("room:42", &ONCE).await.expect("redis-py has released it");
    drop(guard);
}

/// Both count in a file, in a way that loses counts if two do it at once.
#[tokio::test(flavor = "multi_thread")]
async fn redis_py_and_managers_take_turns() {
    const EACH: usize = 4;
    const ROUNDS: usize = 50;

    let Some(python) = python() else { return };
    let (server, locks) = start().await;
    let name = format!("redis-py-{}", std::process::id());
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&file, "0").expect("it is writable");
    let path = file.to_str().expect("it is text");
    let rounds = ROUNDS.to_string();
    let theirs: Vec<_> =
        (0..EACH).map(|_| RedisPy::start(python, &server, &["count", path, &rounds])).collect();
    let ours: Vec<_> = (0..EACH)
        .map(|_| {
            let (locks, file) = (locks.clone(), file.clone());
            tokio::spawn(async move {
                let count = async |_: &LockGuard| {
                    let before = fs::read_to_string(&file).expect("it is readable");
                    let before: usize = before.parse().expect("it is a number");
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    fs::write(&file, (before + 1).to_string()).expect("it is writable");
                };
                for _ in 0..ROUNDS {
                    locks.run("room:42", &PATIENT, count).await.expect("it has time enough");
                }
            })
        })
        .collect();
    for task in ours {
        task.await.expect("no panic");
    }
    theirs.into_iter().for_each(RedisPy::wait);
    let count = fs::read_to_string(&file).expect("it is readable");
    fs::remove_file(&file).expect("it is ours");
    assert_eq!(count, (2 * EACH * ROUNDS).to_string(), "counts were lost: two were inside");
    assert_eq!(server.cli(&["EXISTS", "room:42"]), "0");
}

#[tokio::test]
async fn record_is_plain_string_with_expiry() {
    let (server, locks) = start().await;
    let options = ONCE.expire(Duration::from_secs(60));
    let guard = locks.acquire("room:42", &options).await.expect("it is free");
    assert_eq!(server.cli(&["TYPE", "room:42"]), "string");
    assert!(server.cli(&["GET", "room:42"]).starts_with("cl1:"));
    let remaining: u64 = server.cli(&["PTTL", "room:42"]).parse().expect("a number");
    assert!((1..=60_000).contains(&remaining), "{remaining}");
    assert_eq!(server.cli(&["TYPE", "room:42:fence"]), "none", "only auxiliary keys of ours");
    assert_eq!(server.cli(&["TYPE", "room:{room:42}:fence"]), "string");
    drop(guard);
}

#[tokio::test]
async fn set_nx_px_excludes_and_is_excluded() {
    let (server, locks) = start().await;
    let set = |value| server.cli(&["SET", "room:42", value, "NX", "PX", "3600000"]);
    let release = |value| server.cli(&["EVAL", REDLOCK_RELEASE, "1", "room:42", value]);

    let guard = locks.acquire("room:42", &ONCE).await.expect("it is free");
    assert_eq!(set("theirs"), "(nil)");
    assert_eq!(release("theirs"), "0");
    guard.extend(Duration::from_secs(60)).await.expect("the lock is ours");
    assert_eq!(guard.release().await.ok(), Some(ReleaseOutcome::Released));

    assert_eq!(set("theirs"), "OK");
    let error = locks.acquire("room:42", &ONCE).await.expect_err("they hold it");
    assert!(error.is_contended(), "{error}");
    assert_eq!(server.cli(&["GET", "room:42"]), "theirs");
    assert_eq!(release("theirs"), "1");
    locks.run("room:42", &ONCE, async |_| ()).await.expect("they have released it");
}

#[tokio::test]
async fn release_by_token_from_outside_counts() {
    let (server, locks) = start().await;
    let guard = locks.acquire("room:42", &ONCE).await.expect("it is free");
    let token = server.cli(&["GET", "room:42"]);
    assert_eq!(server.cli(&["EVAL", REDLOCK_RELEASE, "1", "room:42", &token]), "1");
    guard.extend(Duration::from_secs(60)).await.expect_err("it was released");
    assert_eq!(guard.release().await.ok(), Some(ReleaseOutcome::AlreadyExpired));
}
