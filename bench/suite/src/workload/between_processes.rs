//! A lock that goes from one process to another.

use std::path::Path;

use super::{CACHE_LOCK, Case, Figure, Plan, by_hand, peers, retries};
use crate::{
    cli::{Options, Workload},
    implementation::{Kind, Peer, Tuning},
    task::{Task, Turns},
    worker::Flavour,
};

/// Those that ask every 100 ms or so take that long for each turn.
fn turns(options: &Options, kind: Kind) -> u32 {
    match (kind, options.quick) {
        (Kind::Peer(_, Tuning::Defaults), true) => 5,
        (Kind::Peer(_, Tuning::Defaults), false) => 20,
        (_, true) => 20,
        (_, false) => 100,
    }
}

/// One that does not wait has no hand-offs.
fn waits(kind: &Kind) -> bool {
    *kind != Kind::Peer(Peer::DistributedLock, Tuning::Defaults)
}

pub(super) fn hand_off(options: &Options, directory: &Path) -> Plan {
    let retries = retries(options);
    let floors = [Kind::DirectGrant { raise: true }, Kind::DirectGrant { raise: false }];
    let kinds = floors.into_iter().chain(by_hand(retries)).chain(CACHE_LOCK).chain(peers(retries));
    let case = |kind| {
        let task = |process| {
            Task::TakeTurns(Turns {
                turns: turns(options, kind),
                process,
                // Long enough for the other one to be in line.
                hold_us: (1_000, 5_000),
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
    Plan { workload: Workload::HandOff, rounds: options.rounds(), servers: vec![0], cases }
}

pub(super) fn foreign_holder(options: &Options, directory: &Path) -> Plan {
    let retries = retries(options);
    let kinds = by_hand(retries).chain(CACHE_LOCK).chain(peers(retries));
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
                Task::TakeTurnsPlainly(turns(0, (1_000, 20_000))),
                Task::TakeTurns(turns(1, (0, 0))),
            ],
            server: 0,
            figure: Figure::HandOffToSecond,
        }
    };
    let cases = kinds.filter(waits).map(case).collect();
    Plan { workload: Workload::ForeignHolder, rounds: options.rounds(), servers: vec![0], cases }
}
