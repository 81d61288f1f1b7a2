//! One caller alone.

use super::{CACHE_LOCK, Case, Figure, Plan, RETRY};
use crate::{
    cli::{Options, Workload},
    implementation::{Kind, Peer, Tuning},
    task::Task,
    worker::Flavour,
};

fn cycles(options: &Options) -> u32 {
    if options.quick { 1000 } else { 2000 }
}

/// Short rounds and many: what disturbs a round has no part in the median then.
fn rounds(options: &Options) -> u32 {
    options.rounds() * 2 + 1
}

fn size(options: &Options) -> String {
    format!("{} times in a round", cycles(options))
}

pub(super) fn uncontended(options: &Options) -> Plan {
    // How they wait does not matter here.
    let mut kinds = vec![Kind::Raw { retry_ms: RETRY }];
    kinds.extend(CACHE_LOCK);
    kinds.push(Kind::InMemory);
    kinds.extend(Peer::ALL.map(|peer| Kind::Peer(peer, Tuning::Retry(RETRY))));
    let flavours = [Flavour::CurrentThread, Flavour::MultiThread];
    let cases = flavours.into_iter().flat_map(|flavour| {
        kinds.iter().map(move |&kind| Case {
            kind,
            variant: flavour.name().to_owned(),
            flavour,
            tasks: vec![Task::Cycle { cycles: cycles(options) }],
            server: 0,
            figure: Figure::Cycle,
        })
    });
    Plan {
        workload: Workload::Uncontended,
        rounds: rounds(options),
        size: size(options),
        servers: vec![0],
        cases: cases.collect(),
    }
}

pub(super) fn idle_keys(options: &Options) -> Plan {
    let servers = if options.quick { vec![0, 100_000] } else { vec![0, 100_000, 1_000_000] };
    let kinds = [Kind::Raw { retry_ms: RETRY }, Kind::CacheLock { background: false }];
    let mut cases = Vec::new();
    for kind in kinds {
        for (server, keys) in servers.iter().enumerate() {
            cases.push(Case {
                kind,
                variant: format!("{keys} idle keys"),
                flavour: Flavour::CurrentThread,
                tasks: vec![Task::Cycle { cycles: cycles(options) }],
                server,
                figure: Figure::Cycle,
            });
        }
    }
    Plan {
        workload: Workload::IdleKeys,
        rounds: rounds(options),
        size: size(options),
        servers,
        cases,
    }
}
