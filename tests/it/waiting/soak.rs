//! Four processes contend for one lock, with and without faults.

use std::time::{Duration, Instant};

use test_support::RedisServer;

use super::{
    SECOND,
    crew::{Log, Member, Report, Work, history},
    inbox_connections, wait_until_clean,
};

const PROCESSES: usize = 4;
const CALLERS: usize = 250;
const MINUTE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// A manager loses the pushes that are on their way to it.
    CutInbox,
    FlushScripts,
    /// A process dies, and another one takes its place.
    Kill,
    /// A process is stopped for a while.
    Stop,
}

const ALL: &[Fault] = &[Fault::CutInbox, Fault::FlushScripts, Fault::Kill, Fault::Stop];

/// Random numbers, the same ones in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        // Xorshift (G. Marsaglia, 2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn crew(server: &RedisServer, log: &Log) -> Vec<Member> {
    (0..PROCESSES).map(|_| Member::start(server, log)).collect()
}

/// The claims and leases that expired on the server.
pub(crate) fn expired(server: &RedisServer) -> u64 {
    let stats = server.cli(&["INFO", "stats"]);
    let expired = stats.lines().find_map(|line| line.strip_prefix("expired_keys:"));
    expired.and_then(|text| text.trim().parse().ok()).expect("it is there")
}

/// Rounds in which each caller of each process takes the lock once.
fn rounds(rounds: usize) {
    let (server, log) = (RedisServer::start(), Log::new("rounds"));
    let mut members = crew(&server, &log);
    let work =
        Work { callers: CALLERS, sections: 1, expire: 10 * SECOND, timeout: MINUTE, impatient: 0 };
    let (mut total, started) = (Report::default(), Instant::now());
    for _ in 0..rounds {
        members.iter_mut().for_each(|member| member.begin(work));
        members.iter_mut().for_each(|member| total.add(&member.report()));
    }
    let calls = server.calls("evalsha") + server.calls("eval");
    eprintln!(
        "{rounds} rounds in {:?}, {:.3} calls a section: {total:?}",
        started.elapsed(),
        calls as f64 / total.sections as f64
    );
    let sections = rounds * PROCESSES * CALLERS;
    assert_eq!(
        (total.sections, total.contended, total.lost, total.failed),
        (sections as u64, 0, 0, 0)
    );
    let history = history(&log.read());
    assert_eq!((history.sections, history.late, history.overlapping), (sections, 0, 0));
    wait_until_clean(&server);
    assert_eq!(expired(&server), 0, "a waiter waited for a claim to expire");
}

/// At least this many sections and faults; the faults are random, about `pause` milliseconds apart.
fn disturbed(sections: u64, least: usize, faults: &[Fault], pause: u64) {
    let (server, log) = (RedisServer::start(), Log::new("soak"));
    let mut members = crew(&server, &log);
    let work =
        Work { callers: CALLERS, sections: 0, expire: SECOND, timeout: MINUTE, impatient: 5 };
    members.iter_mut().for_each(|member| member.begin(work));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut counts, started) = ([0; 4], Instant::now());
    let section = "begin 1700000000000000 00000\nend   1700000000000000 00000\n".len() as u64;
    while log.size() < sections * section || counts.iter().sum::<usize>() < least {
        std::thread::sleep(Duration::from_millis(pause / 2 + random.below(pause)));
        let fault = faults[random.below(faults.len() as u64) as usize];
        counts[fault as usize] += 1;
        let victim = random.below(PROCESSES as u64) as usize;
        match fault {
            Fault::CutInbox => {
                let inboxes = inbox_connections(&server);
                if let Some(id) = inboxes.get(victim) {
                    let _ = server.command(&["CLIENT", "KILL", "ID", id]);
                }
            }
            Fault::FlushScripts => drop(server.cli(&["SCRIPT", "FLUSH"])),
            Fault::Kill => {
                members[victim].signal("KILL");
                log.append(&format!("dead 0 {}", members[victim].id()));
                members[victim] = Member::start(&server, &log);
                members[victim].begin(work);
            }
            Fault::Stop => {
                let id = members[victim].id();
                members[victim].stop();
                log.append(&format!("stop 0 {id}"));
                std::thread::sleep(Duration::from_millis(random.below(1500)));
                log.append(&format!("go 0 {id}"));
                members[victim].signal("CONT");
            }
        }
    }
    let mut total = Report::default();
    members.iter_mut().for_each(|member| member.tell("end"));
    members.iter_mut().for_each(|member| total.add(&member.report()));
    let history = history(&log.read());
    eprintln!("{counts:?} of {ALL:?} in {:?}: {history:?}, {total:?}", started.elapsed());
    assert!(history.sections as u64 >= total.sections);
    // A minute is far more than a wait takes.
    assert_eq!((total.contended, total.failed), (0, 0));
    // A process that was stopped is late by that, and a busy machine by something.
    assert!(total.overrun < 10 * SECOND, "{:?} too late", total.overrun);
    if !faults.contains(&Fault::Stop) {
        assert_eq!((total.lost, history.late), (0, 0));
    }
    if !faults.contains(&Fault::Stop) && !faults.contains(&Fault::Kill) {
        assert_eq!(history.overlapping, 0);
        assert_eq!(expired(&server), 0, "a waiter waited for a claim to expire");
    }
    wait_until_clean(&server);
}

#[test]
fn processes_take_turns() {
    rounds(3);
}

#[test]
fn processes_take_turns_under_faults() {
    disturbed(4000, 12, ALL, 100);
}

#[test]
#[ignore = "takes long; run in release mode"]
fn many_rounds() {
    rounds(200);
}

#[test]
#[ignore = "takes long; run in release mode"]
fn many_sections_under_faults() {
    disturbed(100_000, 100, ALL, 300);
}

#[test]
#[ignore = "takes long; run in release mode"]
fn many_sections_with_lost_pushes() {
    disturbed(100_000, 100, &[Fault::CutInbox, Fault::FlushScripts], 20);
}
