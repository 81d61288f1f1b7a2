//! Walks through the model are the same each time, see all there is, and violate nothing even
//! where the sizes are beyond what can be gone through.

use std::collections::BTreeSet;

use lock_model::{Action, Answer, Broken, Config, ManagerView, PhaseView, Step, Token, trace};

fn large() -> Config {
    Config {
        managers: 3,
        waiters: 12,
        faults: 12,
        cancels: 8,
        renewals: 8,
        yields: 4,
        mixed: true,
        block: 4,
        pace: 4,
        ..Config::default()
    }
}

/// The name of a variant.
fn name(variant: impl std::fmt::Debug) -> String {
    format!("{variant:?}").chars().take_while(|letter| letter.is_alphanumeric()).collect()
}

#[test]
fn a_seed_gives_the_same_walk_each_time() {
    let walk = |seed| trace(large(), seed, 300).collect::<Vec<Step>>();
    assert_eq!(walk(1), walk(1));
    assert_ne!(walk(1), walk(2));
    let longest = (1..10).map(|seed| walk(seed).len()).max();
    assert!(longest > Some(100), "only {longest:?} steps");
    assert_eq!(trace(large(), 1, 7).count(), 7);
}

#[test]
fn walks_violate_nothing() {
    for seed in 0..1000 {
        let mut walk = trace(large(), seed, 500);
        while let Some(step) = walk.next() {
            assert_eq!(walk.violated(), [""; 0], "with seed {seed}, after {step:?}");
        }
    }
}

#[test]
fn a_walk_tells_what_is_violated() {
    let broken = Config { broken: Some(Broken::DeleteWithoutCompare), ..large() };
    let violates = |seed| {
        let mut walk = trace(broken.clone(), seed, 500);
        std::iter::from_fn(|| walk.next().map(|_| walk.violated())).any(|names| !names.is_empty())
    };
    assert!((0..200).any(violates));
}

#[test]
fn walks_see_all_there_is() {
    let mut actions = BTreeSet::new();
    let mut answers = BTreeSet::new();
    let mut phases = BTreeSet::new();
    let mut foreign = Vec::new();
    let configs = [large(), Config { foreign: true, ..large() }, Config { push: false, ..large() }];
    for config in configs {
        for seed in 0..300 {
            for step in trace(config.clone(), seed, 500) {
                actions.insert(name(step.action));
                phases.extend(step.after.managers.iter().map(|manager| name(manager.phase)));
                let Some(served) = step.served else { continue };
                answers.insert(name(served.answer));
                if let Answer::Busy { foreign: true, .. } = served.answer {
                    foreign.push(step.after.lock.map(|lock| lock.token));
                }
            }
        }
    }
    let all = [
        "Arrive",
        "Cancel",
        "Crash",
        "Cut",
        "DropInbox",
        "End",
        "Flow",
        "Flush",
        "ForeignEnds",
        "ForgetAgain",
        "HandOver",
        "LagTick",
        "Lose",
        "LosePush",
        "Overtake",
        "Pause",
        "Push",
        "Reconnect",
        "Renew",
        "Reply",
        "Resume",
        "Serve",
        "ServeLate",
        "SlowTick",
        "Stall",
        "Yield",
        "Tick",
        "Timer",
    ];
    assert_eq!(actions, all.map(String::from).into());
    let all = ["Busy", "Free", "Got", "Kept", "Lost", "NotHeld", "Released"];
    assert_eq!(answers, all.map(String::from).into());
    let all = ["Yielded", "Asking", "Holding", "Idle", "Passing", "Registered", "Releasing"];
    assert_eq!(phases, all.map(String::from).into());
    assert!(!foreign.is_empty() && foreign.iter().all(|&lock| lock == Some(Token::FOREIGN)));
}

/// What a step shows belongs together.
#[test]
fn a_step_shows_what_was_done_in_it() {
    for seed in 0..300 {
        let walk = trace(large(), seed, 500);
        let mut before = walk.view();
        for step in walk {
            let told = format!("with seed {seed}: {step:?}");
            if let Some(id) = step.action.manager() {
                let id = usize::from(id);
                let (then, now) = (&before.managers[id], &step.after.managers[id]);
                let requests = |manager: &ManagerView| {
                    manager.flights.iter().map(|&(request, _)| request).collect::<Vec<_>>()
                };
                let stay = match step.action {
                    Action::Reply(_) => requests(then).split_off(1),
                    Action::Cut(..) | Action::Crash(..) => Vec::new(),
                    _ => requests(then),
                };
                if !matches!(step.action, Action::Overtake(_)) {
                    assert_eq!(requests(now), [stay, step.sent.clone()].concat(), "{told}");
                }
                match step.action {
                    Action::Reply(_) => {
                        let first = then.flights.first().copied();
                        assert_eq!(step.answered.map(|request| (request, true)), first, "{told}");
                    }
                    Action::Push(_, push) => assert_eq!(step.push, Some(then.pushes[push])),
                    Action::Reconnect(_) => assert!(step.sent.starts_with(&then.unsent), "{told}"),
                    _ => {}
                }
            } else {
                assert!(step.sent.is_empty() && step.served.is_none(), "{told}");
            }
            if let Some(served) = &step.served {
                match served.answer {
                    Answer::Got { block, others } => {
                        assert!(block.left() > 0, "{told}");
                        assert_eq!(step.after.fence, Some(block.high), "{told}");
                        assert_eq!(others, !step.after.waiting.is_empty(), "{told}");
                    }
                    Answer::Busy { ttl, .. } => {
                        assert_eq!(step.after.lock.map(|lock| lock.ttl), Some(ttl), "{told}");
                    }
                    Answer::Free => assert_eq!(step.after.lock, None, "{told}"),
                    _ => {}
                }
            }
            if let Some(began) = step.began {
                let phase = step.after.managers[usize::from(began.manager)].phase;
                assert!(matches!(phase, PhaseView::Holding { .. }), "{told}");
            }
            before = step.after;
        }
    }
}
