//! A lock that goes from one process to another.

use std::path::Path;

use super::{CACHE_LOCK, Case, Figure, Plan, by_hand, peers};
use crate::{
    cli::{Options, Workload},
    implementation::{Kind, Peer, Tuning},
    task::{Task, Turns},
    worker::Flavour,
};

/// How often each process has its turn. Those that ask every 100 ms or so take long for each.
fn turns(options: &Options, kind: Kind) -> u32 {
    match (is_slow(kind), options.quick) {
        (_, true) => 12,
        (true, false) => 20,
        (false, false) => 60,
    }
}

fn is_slow(kind: Kind) -> bool {
    matches!(kind, Kind::Peer(_, Tuning::Defaults))
}

/// How long a section takes: as long as the longest pause between two tries, so that a release
/// falls into any part of it. The waiter begins to ask when the section begins.
fn hold_us(kind: Kind) -> (u64, u64) {
    if is_slow(kind) { (1_000, 200_000) } else { (1_000, 20_000) }
}

/// One that does not wait has no hand-offs.
fn waits(kind: &Kind) -> bool {
    *kind != Kind::Peer(Peer::DistributedLock, Tuning::Defaults)
}

pub(super) fn hand_off(options: &Options, directory: &Path) -> Plan {
    let floors = [Kind::DirectGrant { raise: true }, Kind::DirectGrant { raise: false }];
    let kinds = floors.into_iter().chain(by_hand(options)).chain(CACHE_LOCK).chain(peers(options));
    let case = |kind| {
        let task = |process| {
            Task::TakeTurns(Turns {
                turns: turns(options, kind),
                process,
                hold_us: hold_us(kind),
                directory: directory.to_owned(),
            })
        };
        Case {
            kind,
            variant: String::new(),
            flavour: Flavour::CurrentThread,
            tasks: vec![task(0), task(1)],
            server: 0,
            figure: Figure::HandOff,
        }
    };
    let cases = kinds.filter(waits).map(case).collect();
    Plan {
        workload: Workload::HandOff,
        rounds: options.rounds(),
        size: "sections of 1 to 20 ms".to_owned(),
        servers: vec![0],
        cases,
    }
}

pub(super) fn foreign_holder(options: &Options, directory: &Path) -> Plan {
    let kinds = by_hand(options).chain(CACHE_LOCK).chain(peers(options));
    let case = |kind: Kind| {
        let turns = |process, hold_us| Turns {
            turns: turns(options, kind),
            process,
            hold_us,
            directory: directory.to_owned(),
        };
        Case {
            kind,
            variant: String::new(),
            flavour: Flavour::CurrentThread,
            tasks: vec![
                Task::TakeTurnsAsForeigner(turns(0, hold_us(kind))),
                Task::TakeTurns(turns(1, (0, 0))),
            ],
            server: 0,
            figure: Figure::HandOffToSecond,
        }
    };
    let cases = kinds.filter(waits).map(case).collect();
    Plan {
        workload: Workload::ForeignHolder,
        rounds: options.rounds(),
        size: "sections of 1 to 20 ms".to_owned(),
        servers: vec![0],
        cases,
    }
}
