//! Many callers that come at the same moment.

use super::{CACHE_LOCK, Case, Figure, Plan, RETRY, by_hand, peers};
use crate::{
    cli::{Options, Workload},
    implementation::{Kind, Peer, Tuning},
    task::Task,
    worker::Flavour,
};

fn crowd(kind: Kind, processes: u32, callers: u32, keys: u32, variant: String) -> Case {
    Case {
        kind,
        variant,
        flavour: Flavour::MultiThread,
        tasks: vec![
            Task::Crowd { callers: callers / processes, keys, sections: 1 };
            processes as usize
        ],
        server: 0,
        figure: Figure::Wall,
    }
}

pub(super) fn seckill(options: &Options) -> Plan {
    let callers = if options.quick { 400 } else { 1000 };
    let kinds = by_hand(options).chain(CACHE_LOCK).chain([Kind::InMemory]).chain(peers(options));
    Plan {
        workload: Workload::Seckill,
        rounds: options.rounds(),
        size: format!("{callers} callers"),
        servers: vec![0],
        cases: kinds.map(|kind| crowd(kind, 1, callers, 2, String::new())).collect(),
    }
}

pub(super) fn processes(options: &Options) -> Plan {
    let callers = if options.quick { 400 } else { 1000 };
    let kinds = by_hand(options).chain(CACHE_LOCK).chain(peers(options));
    Plan {
        workload: Workload::Processes,
        rounds: options.rounds(),
        size: format!("4 processes with {} callers each", callers / 4),
        servers: vec![0],
        cases: kinds.map(|kind| crowd(kind, 4, callers, 1, String::new())).collect(),
    }
}

pub(super) fn scaling(options: &Options) -> Plan {
    let (callers, sizes): (_, &[u32]) =
        if options.quick { (128, &[1, 8]) } else { (512, &[1, 2, 4, 8, 16, 32, 64]) };
    let kinds = [Kind::Raw { retry_ms: RETRY }]
        .into_iter()
        .chain(CACHE_LOCK)
        .chain(Peer::ALL.map(|peer| Kind::Peer(peer, Tuning::Retry(RETRY))));
    let mut cases = Vec::new();
    for kind in kinds {
        for &size in sizes {
            let variant = format!("{size} process{}", if size == 1 { "" } else { "es" });
            cases.push(crowd(kind, size, callers, 1, variant));
        }
    }
    Plan {
        workload: Workload::Scaling,
        // The most expensive one; five rounds are what a median takes.
        rounds: options.rounds().min(5),
        size: format!("{callers} callers"),
        servers: vec![0],
        cases,
    }
}

/// Each caller has a key of its own, so no caller waits for a holder: what is measured is how much a
/// connection carries. Once, and with callers that come back.
pub(super) fn burst(options: &Options) -> Plan {
    let sizes: &[(u32, u32)] =
        if options.quick { &[(20_000, 1)] } else { &[(50_000, 1), (50_000, 8), (200_000, 1)] };
    let mut cases = Vec::new();
    for &(callers, sections) in sizes {
        let peers = Peer::ALL.map(|peer| Kind::Peer(peer, Tuning::Retry(RETRY)));
        // Of the others one size tells enough.
        let peers = peers.into_iter().filter(|_| (callers, sections) == sizes[0]);
        for kind in [Kind::Raw { retry_ms: RETRY }].into_iter().chain(CACHE_LOCK).chain(peers) {
            let times = if sections == 1 { "once" } else { "8 times" };
            let variant = format!("{callers} callers, {times}");
            let mut case = crowd(kind, 1, callers, callers, variant);
            case.tasks = vec![Task::Crowd { callers, keys: callers, sections }];
            cases.push(case);
        }
    }
    Plan {
        workload: Workload::Burst,
        rounds: options.rounds().min(5),
        size: "a key for each caller".to_owned(),
        servers: vec![0],
        cases,
    }
}
