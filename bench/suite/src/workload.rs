//! What the implementations run: for each workload a list of cases.

mod alone;
mod between_processes;
mod crowds;
mod leases;

use std::path::Path;

use crate::{
    cli::{Options, Workload},
    implementation::{Kind, Peer, Tuning},
    task::Task,
    worker::Flavour,
};

/// A workload as it is to be run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) workload: Workload,
    pub(crate) rounds: u32,
    /// For the title.
    pub(crate) size: String,
    /// The keys that each server has before it begins.
    pub(crate) servers: Vec<u32>,
    pub(crate) cases: Vec<Case>,
}

/// An implementation under one set of conditions.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    /// What the workload varies, such as the number of processes; empty if nothing.
    pub(crate) variant: String,
    pub(crate) flavour: Flavour,
    /// One for each process.
    pub(crate) tasks: Vec<Task>,
    /// Its place in [`Plan::servers`].
    pub(crate) server: usize,
    pub(crate) figure: Figure,
}

/// The time by which implementations are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Of all sections, divided by their number.
    Cycle,
    /// From the first caller's request to the end of the last one's.
    Wall,
    /// The median from the beginning of one process's release to the start of the other one's
    /// section.
    HandOff,
    /// As `HandOff`, of those from process 0 to process 1 only.
    HandOffToSecond,
    /// How long the locks were held.
    Held,
}

impl Case {
    /// The implementation's name and everything that is set.
    pub(crate) fn settings(&self) -> String {
        // A caller alone does not try again.
        let alone = self.figure == Figure::Cycle;
        let settings = if alone { String::new() } else { self.kind.settings() };
        match (&*settings, &*self.variant) {
            ("", variant) => variant.to_owned(),
            (settings, "") => settings.to_owned(),
            (settings, variant) => format!("{settings}, {variant}"),
        }
    }

    fn is_wanted(&self, texts: &[String]) -> bool {
        let name = format!("{}, {}", self.kind.name(), self.settings());
        texts.is_empty() || texts.iter().any(|text| name.contains(&**text))
    }
}

/// All that the options ask for. `directory` is where processes meet.
pub(crate) fn plan(options: &Options, directory: &Path) -> Vec<Plan> {
    let mut plans = Vec::new();
    for workload in Workload::ALL.into_iter().filter(|workload| options.runs(*workload)) {
        let mut plan = match workload {
            Workload::Uncontended => alone::uncontended(options),
            Workload::IdleKeys => alone::idle_keys(options),
            Workload::Seckill => crowds::seckill(options),
            Workload::Processes => crowds::processes(options),
            Workload::Scaling => crowds::scaling(options),
            Workload::HandOff => between_processes::hand_off(options, directory),
            Workload::ForeignHolder => between_processes::foreign_holder(options, directory),
            Workload::Leases => leases::leases(options),
            Workload::Burst => crowds::burst(options),
        };
        let mut first = true;
        plan.cases
            .retain(|case| std::mem::take(&mut first) || case.is_wanted(&options.implementation));
        plans.push(plan);
    }
    plans
}

/// The pauses of those that ask again, in ms.
const RETRIES: [u64; 3] = [2, 5, 20];
/// That of a quick run, and of workloads in which all of them would take too long.
const RETRY: u64 = 5;

fn retries(options: &Options) -> &'static [u64] {
    if options.quick { &[RETRY] } else { &RETRIES }
}

const CACHE_LOCK: [Kind; 2] =
    [Kind::CacheLock { background: false }, Kind::CacheLock { background: true }];

fn by_hand(options: &Options) -> impl Iterator<Item = Kind> + use<> {
    retries(options).iter().map(|&retry_ms| Kind::Raw { retry_ms })
}

/// Each peer at its defaults, unless the run is a quick one, and at every pause.
fn peers(options: &Options) -> impl Iterator<Item = Kind> {
    let defaults = (!options.quick).then_some(Tuning::Defaults);
    let tunings = defaults.into_iter().chain(retries(options).iter().map(|&ms| Tuning::Retry(ms)));
    Peer::ALL
        .into_iter()
        .flat_map(move |peer| tunings.clone().map(move |tuning| Kind::Peer(peer, tuning)))
}
