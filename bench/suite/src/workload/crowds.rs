//! Many callers that come at the same moment.

use super::{CACHE_LOCK, Case, Figure, Plan, RETRY, by_hand, peers, retries};
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
        tasks: vec![Task::Crowd { callers: callers / processes, keys }; processes as usize],
        server: 0,
        figure: Figure::Wall,
    }
}

pub(super) fn seckill(options: &Options) -> Plan {
    let retries = retries(options);
    let kinds = by_hand(retries).chain(CACHE_LOCK).chain([Kind::InMemory]).chain(peers(retries));
    let cases = kinds.map(|kind| crowd(kind, 1, 1000, 2, String::new())).collect();
    Plan { workload: Workload::Seckill, rounds: options.rounds(), servers: vec![0], cases }
}

pub(super) fn processes(options: &Options) -> Plan {
    let retries = retries(options);
    let kinds = by_hand(retries).chain(CACHE_LOCK).chain(peers(retries));
    let cases = kinds.map(|kind| crowd(kind, 4, 1000, 1, String::new())).collect();
    Plan { workload: Workload::Processes, rounds: options.rounds(), servers: vec![0], cases }
}

pub(super) fn scaling(options: &Options) -> Plan {
    let sizes: &[u32] = if options.quick { &[1, 8] } else { &[1, 2, 4, 8, 16, 32, 64] };
    let kinds = by_hand(&[RETRY])
        .chain(CACHE_LOCK)
        .chain(Peer::ALL.map(|peer| Kind::Peer(peer, Tuning::Retry(RETRY))));
    let mut cases = Vec::new();
    for kind in kinds {
        for &size in sizes {
            let variant = format!("{size} process{}", if size == 1 { "" } else { "es" });
            cases.push(crowd(kind, size, 512, 1, variant));
        }
    }
    // The most expensive one; five rounds are what a median takes.
    let rounds = options.rounds().min(5);
    Plan { workload: Workload::Scaling, rounds, servers: vec![0], cases }
}
