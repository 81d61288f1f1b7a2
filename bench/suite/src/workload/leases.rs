//! Many locks that are held at once.

use super::{Case, Figure, Plan, RETRY};
use crate::{
    cli::{Options, Workload},
    implementation::{Kind, Peer, Tuning},
    task::Task,
    worker::Flavour,
};

pub(super) fn leases(options: &Options) -> Plan {
    let (leases, milliseconds) = if options.quick { (5_000, 4_000) } else { (100_000, 60_000) };
    let mut kinds = vec![Kind::CacheLock { background: false }];
    if !options.quick {
        // redis-lock does not extend leases, and rslock only while it runs a function.
        // distributed-lock does, with a task for each lock that sleeps and looks again: it has not
        // acquired so many within three minutes.
        kinds.push(Kind::Peer(Peer::AsyncRedisLock, Tuning::Retry(RETRY)));
    }
    let cases = kinds.into_iter().map(|kind| Case {
        kind,
        variant: String::new(),
        flavour: Flavour::MultiThread,
        tasks: vec![Task::Hold { leases, milliseconds }],
        server: 0,
        figure: Figure::Held,
    });
    // A minute says enough: it is an average already.
    Plan {
        workload: Workload::Leases,
        rounds: 1,
        size: format!("{leases} leases of 10 s"),
        servers: vec![0],
        cases: cases.collect(),
    }
}
