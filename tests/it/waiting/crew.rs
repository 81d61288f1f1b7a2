//! Processes that contend for a lock, and the log that they write about it.
//!
//! The children are this same binary: the ignored test `waiting::crew::child`, which reads its orders
//! from standard input.

use std::{
    collections::HashMap,
    env, fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use cache_lock::{LockGuard, LockManager, LockOptions};
use test_support::RedisServer;

/// A file that all members append lines to, in the order of what happens.
#[derive(Clone)]
pub(crate) struct Log(Arc<PathBuf>);

impl Log {
    pub(crate) fn new(test: &str) -> Self {
        let name = format!("{test}-{}.log", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, "").expect("the target directory is writable");
        Self(Arc::new(path))
    }

    pub(crate) fn append(&self, line: &str) {
        Appender::open(&self.0).append(line);
    }

    pub(crate) fn read(&self) -> String {
        fs::read_to_string(&*self.0).expect("it is there")
    }

    /// The number of lines so far, and a little more: each section writes two of the same length.
    pub(crate) fn size(&self) -> u64 {
        fs::metadata(&*self.0).expect("it is there").len()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if Arc::strong_count(&self.0) == 1 {
            let _ = fs::remove_file(&*self.0);
        }
    }
}

/// Each line is one write, and lands whole behind those before it.
struct Appender(fs::File);

impl Appender {
    fn open(path: &Path) -> Self {
        Self(fs::File::options().append(true).open(path).expect("it is there"))
    }

    fn append(&self, line: &str) {
        let line = format!("{line}\n");
        let written = (&self.0).write(line.as_bytes()).expect("there is room");
        assert_eq!(written, line.len());
    }
}

/// What a member tells about its callers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Report {
    pub(crate) sections: u64,
    /// Callers that did not get the lock within their timeout.
    pub(crate) contended: u64,
    /// The same of callers with a short timeout.
    pub(crate) impatient: u64,
    /// Callers that lost their lease.
    pub(crate) lost: u64,
    /// Callers that got another error.
    pub(crate) failed: u64,
    /// The longest wait.
    pub(crate) longest: Duration,
    /// The waits longer than a second.
    pub(crate) over_a_second: u64,
    /// How far the longest call went beyond its timeout, or an attempt if that is longer.
    pub(crate) overrun: Duration,
}

impl Report {
    pub(crate) fn add(&mut self, other: &Self) {
        self.sections += other.sections;
        self.contended += other.contended;
        self.impatient += other.impatient;
        self.lost += other.lost;
        self.failed += other.failed;
        self.longest = self.longest.max(other.longest);
        self.over_a_second += other.over_a_second;
        self.overrun = self.overrun.max(other.overrun);
    }

    fn to_line(self) -> String {
        let Self { sections, contended, impatient, lost, failed, over_a_second, .. } = self;
        let (longest, overrun) = (self.longest.as_micros(), self.overrun.as_micros());
        format!(
            "done {sections} {contended} {impatient} {lost} {failed} {over_a_second} {longest} {overrun}"
        )
    }

    fn from_line(line: &str) -> Option<Self> {
        let numbers = line.strip_prefix("done ")?.split(' ').map(|word| word.parse().ok());
        let numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
        let [sections, contended, impatient, lost, failed, over_a_second, longest, overrun] =
            numbers[..]
        else {
            return None;
        };
        let (longest, overrun) = (Duration::from_micros(longest), Duration::from_micros(overrun));
        let counts = Self { sections, contended, impatient, lost, failed, ..Self::default() };
        Some(Self { over_a_second, longest, overrun, ..counts })
    }
}

/// What the callers of a member do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) callers: usize,
    /// How many sections each caller runs; 0 for as many as there is time for.
    pub(crate) sections: usize,
    pub(crate) expire: Duration,
    pub(crate) timeout: Duration,
    /// One of this many callers waits for a tenth of a second only; 0 for none.
    pub(crate) impatient: usize,
}

/// A child process, which ends with its owner.
pub(crate) struct Member {
    child: Child,
    orders: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Member {
    pub(crate) fn start(server: &RedisServer, log: &Log) -> Self {
        let mut child = Command::new(env::current_exe().expect("our own path"))
            .args(["--ignored", "--exact", "waiting::crew::child", "--nocapture"])
            .env("CREW_REDIS", server.url())
            .env("CREW_LOG", &*log.0)
            // Its other end is closed when this process ends, however that happens.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it ran once");
        let orders = child.stdin.take().expect("it is a pipe");
        let lines = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut member = Self { child, orders, lines };
        member.read_until(|line| (line == "ready").then_some(()));
        member
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn begin(&mut self, work: Work) {
        let Work { callers, sections, expire, timeout, impatient } = work;
        let (expire, timeout) = (expire.as_millis(), timeout.as_millis());
        self.tell(&format!("work {callers} {sections} {expire} {timeout} {impatient}"));
    }

    pub(crate) fn tell(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("it reads");
    }

    /// Waits until all of its callers are done.
    pub(crate) fn report(&mut self) -> Report {
        self.read_until(Report::from_line)
    }

    fn read_until<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> T {
        let mut line = String::new();
        loop {
            line.clear();
            let length = self.lines.read_line(&mut line).expect("it writes lines");
            assert!(length > 0, "the child has ended");
            if let Some(value) = read(line.trim_end()) {
                return value;
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &kill]).status();
        assert!(status.expect("there is a shell").success());
    }

    /// Stops it; on return it does not run any more.
    pub(crate) fn stop(&self) {
        self.signal("STOP");
        let stat = format!("/proc/{}/stat", self.child.id());
        test_support::wait_until("the child is stopped", || {
            fs::read_to_string(&stat).is_ok_and(|text| text.contains(") T "))
        });
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test of its own: what the children do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the other tests as another process"]
async fn child() {
    let url = env::var("CREW_REDIS").expect("set by the parent");
    let log = PathBuf::from(env::var("CREW_LOG").expect("set by the parent"));
    let locks = LockManager::connect(&url).await.expect("the server runs");
    let ended = Arc::new(AtomicBool::new(false));
    let (sender, orders) = mpsc::channel();
    let end = Arc::clone(&ended);
    std::thread::spawn(move || {
        let mut stdin = BufReader::new(std::io::stdin());
        let mut line = String::new();
        while stdin.read_line(&mut line).is_ok_and(|length| length > 0) {
            if line.trim_end() == "end" {
                end.store(true, Ordering::SeqCst);
            } else {
                let _ = sender.send(line.trim_end().to_owned());
            }
            line.clear();
        }
        std::process::exit(1);
    });
    say("ready");
    loop {
        let order = tokio::task::block_in_place(|| orders.recv()).expect("the reader goes on");
        let numbers = order.strip_prefix("work ").expect("there is no other order").split(' ');
        let numbers: Vec<u64> = numbers.map(|word| word.parse().expect("a number")).collect();
        let [callers, sections, expire, timeout, impatient] = numbers[..] else {
            panic!("{order}")
        };
        let work = Work {
            callers: callers as usize,
            sections: sections as usize,
            expire: Duration::from_millis(expire),
            timeout: Duration::from_millis(timeout),
            impatient: impatient as usize,
        };
        say(&run_callers(&locks, &log, work, &ended).await.to_line());
    }
}

/// Around what captures the output of tests.
fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "\n{line}").and_then(|()| stdout.flush()).expect("the parent reads");
}

async fn run_callers(
    locks: &LockManager,
    log: &Path,
    work: Work,
    ended: &Arc<AtomicBool>,
) -> Report {
    let total = Arc::new(Mutex::new(Report::default()));
    let log = Arc::new(Appender::open(log));
    let callers: Vec<_> = (0..work.callers)
        .map(|caller| {
            let (locks, log, ended) = (locks.clone(), Arc::clone(&log), Arc::clone(ended));
            let total = Arc::clone(&total);
            let is_impatient = work.impatient > 0 && caller % work.impatient == 0;
            tokio::spawn(async move {
                let mut report = Report::default();
                let mut sections = 0;
                while !ended.load(Ordering::SeqCst)
                    && (work.sections == 0 || sections < work.sections)
                {
                    sections += 1;
                    section(&locks, &log, work, is_impatient, &mut report).await;
                }
                total.lock().expect("no panic").add(&report);
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("no panic");
    }
    *total.lock().expect("no panic")
}

async fn section(
    locks: &LockManager,
    log: &Appender,
    work: Work,
    is_impatient: bool,
    report: &mut Report,
) {
    let timeout = if is_impatient { Duration::from_millis(100) } else { work.timeout };
    let options = LockOptions::new().expire(work.expire).timeout(timeout);
    let attempt = Duration::from_secs(1).min(work.expire / 2);
    let (called, process) = (Instant::now(), std::process::id());
    let mut waited = None;
    let body = async |lock: &LockGuard| {
        waited = Some(called.elapsed());
        log.append(&format!("begin {} {process}", lock.token()));
        tokio::task::yield_now().await;
        log.append(&format!("end   {} {process}", lock.token()));
    };
    let outcome = locks.run("room", &options, body).await;
    let waited = waited.unwrap_or_else(|| called.elapsed());
    report.longest = report.longest.max(waited);
    report.over_a_second += u64::from(waited > Duration::from_secs(1));
    report.overrun = report.overrun.max(waited.saturating_sub(timeout.max(attempt)));
    match outcome {
        Ok(()) => report.sections += 1,
        Err(error) if error.is_lost() => report.lost += 1,
        // If the process was stopped, it is all the same to it why there was no answer.
        Err(error) if error.is_retryable() && is_impatient => report.impatient += 1,
        Err(error) if error.is_contended() => report.contended += 1,
        Err(error) => {
            report.failed += 1;
            say(&format!("failed: {error}"));
        }
    }
}

/// What the log tells.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) sections: usize,
    /// Sections that began behind a later one. A fenced write refuses those.
    pub(crate) late: usize,
    /// Sections that began before one that was open had ended.
    pub(crate) overlapping: usize,
}

/// Reads a log. Lines are `begin TOKEN PROCESS`, `end TOKEN PROCESS`, and of a process that was
/// stopped or has died, `stop 0 PROCESS`, `go 0 PROCESS`, `dead 0 PROCESS`.
///
/// # Panics
/// If the tokens do not rise, but for one section of a process that goes on; or two sections
/// overlap, but for one whose process was stopped or has died in it.
pub(crate) fn history(log: &str) -> History {
    let mut history = History::default();
    let mut highest = 0;
    // The open sections, and whether their processes were stopped meanwhile.
    let mut open: HashMap<u64, (u64, bool)> = HashMap::new();
    // The processes that went on and have begun no late section since.
    let mut awake = Vec::new();
    for (number, line) in log.lines().enumerate() {
        let mut words = line.split_whitespace();
        let what = words.next().expect("a word");
        let mut next = || -> u64 { words.next().expect("a word").parse().expect("a number") };
        let (token, process) = (next(), next());
        match what {
            "begin" => {
                history.sections += 1;
                if token <= highest {
                    let has_slept = awake.contains(&process);
                    awake.retain(|&other| other != process);
                    assert!(has_slept && token < highest, "line {number}: {line}, not {highest}");
                    history.late += 1;
                    open.insert(token, (process, true));
                    continue;
                }
                highest = token;
                for (other, (_, stopped)) in &open {
                    assert!(*stopped, "line {number}: {line}, while {other} is open");
                    history.overlapping += 1;
                }
                // A process that was stopped in a section may end it at any later time, once.
                open.retain(|_, (_, stopped)| !*stopped);
                open.insert(token, (process, false));
            }
            "end" => drop(open.remove(&token)),
            "stop" | "dead" => {
                let its = open.values_mut().filter(|(other, _)| *other == process);
                its.for_each(|(_, stopped)| *stopped = true);
            }
            "go" => awake.push(process),
            other => panic!("{other}"),
        }
    }
    history
}
