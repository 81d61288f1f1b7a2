//! Random walks through the model, by which the code that implements the protocol is checked: a
//! replay does to the code what a step tells, and compares what the code does with what the step
//! shows.

use rand::{SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use stateright::{Expectation, Model};

use crate::{
    action::Action,
    canonical::State,
    config::Config,
    message::{Push, Request},
    model::LockModel,
    state::{Manager, World},
    step,
    view::{ServedView, View},
};

/// One step of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What happened, and to which manager.
    pub action: Action,
    /// The push that was read or lost.
    pub push: Option<Push>,
    /// Requests that the manager has put on its connection, in this order.
    pub sent: Vec<Request>,
    /// Releases and forgets that wait for its next connection.
    pub kept: Vec<Request>,
    /// The request whose reply was read.
    pub answered: Option<Request>,
    /// The request that the server has carried out. Its reply is read later, in the order of the
    /// connection, or never.
    pub served: Option<ServedView>,
    /// The section that began.
    pub began: Option<SectionView>,
    /// All there is, after the step.
    pub after: View,
}

/// A section that began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionView {
    /// Of which manager.
    pub manager: u8,
    /// Its number, in the model's numbers. There is one unless a rule is broken.
    pub number: Option<u16>,
}

/// A walk: an iterator over its steps. It ends after as many as were asked for, or when nothing can
/// happen any more, since sections and faults are bounded by the [`Config`].
#[derive(Clone, Debug)]
pub struct Trace {
    model: LockModel,
    world: World,
    random: ChaCha8Rng,
    left: usize,
}

/// The walk of at most `steps` steps that belongs to `seed`: always the same one.
///
/// The steps of a manager that works are many times as likely as faults are. Traces are longest
/// where `config` has many waiters.
///
/// ```
/// use lock_model::{Config, trace};
///
/// let config = Config { waiters: 10, faults: 0, ..Config::default() };
/// let mut walk = trace(config, 7, 200);
/// assert!(walk.view().waiting.is_empty());
/// for step in walk.by_ref() {
///     println!("{:?}: sends {:?}", step.action, step.sent);
/// }
/// assert!(walk.violated().is_empty());
/// ```
#[must_use]
pub fn trace(config: Config, seed: u64, steps: usize) -> Trace {
    let world = LockModel::initial(&config);
    Trace {
        model: LockModel::new(config),
        world,
        random: ChaCha8Rng::seed_from_u64(seed),
        left: steps,
    }
}

impl Trace {
    /// What there is at present: before the first step, what the walk begins with.
    #[must_use]
    pub fn view(&self) -> View {
        View::from(&self.world)
    }

    /// The names of the properties that do not hold at present.
    #[must_use]
    pub fn violated(&self) -> Vec<&'static str> {
        let state = State { world: self.world.clone(), gap: self.model.gap() };
        let properties = self.model.properties().into_iter();
        properties
            .filter(|property| property.expectation == Expectation::Always)
            .filter(|property| !(property.condition)(&self.model, &state))
            .map(|property| property.name)
            .collect()
    }
}

impl Iterator for Trace {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        self.left = self.left.checked_sub(1)?;
        let mut actions = Vec::new();
        crate::action::collect(&self.model.config, &self.world, &mut actions);
        let action = *actions.choose_weighted(&mut self.random, weight).ok()?;
        let before = self.world.clone();
        let effects = step::apply(&self.model.config, &mut self.world, action);
        let mut step = Step {
            action,
            push: None,
            sent: Vec::new(),
            kept: Vec::new(),
            answered: None,
            served: effects.served.map(|served| ServedView::new(served, &self.world)),
            began: None,
            after: View::from(&self.world),
        };
        if let Some(manager) = action.manager() {
            let of = |world: &World| world.managers[usize::from(manager)].clone();
            tell_manager(&mut step, &of(&before), &of(&self.world));
            step.began =
                effects.section.map(|section| SectionView { manager, number: section.number });
        }
        Some(step)
    }
}

/// What the manager has read and sent in the step.
fn tell_manager(step: &mut Step, before: &Manager, after: &Manager) {
    let mut known = before.flights.len();
    match step.action {
        Action::Reply(_) => {
            step.answered = before.flights.first().map(|flight| flight.request);
            known -= 1;
        }
        Action::Push(_, push) | Action::LosePush(_, push) => {
            step.push = before.pushes.get(push).copied();
        }
        _ => {}
    }
    step.sent = after.flights.iter().skip(known).map(|flight| flight.request).collect();
    step.kept = after.unsent.iter().skip(before.unsent.len()).copied().collect();
}

/// How likely an action is, compared with the others that may happen instead.
fn weight(action: &Action) -> u32 {
    match action {
        Action::Serve(_) | Action::Reply(_) | Action::Push(..) | Action::Timer(_) => 40,
        Action::Tick | Action::Lose(_) => 40,
        Action::HandOver(_) | Action::End(_) => 20,
        Action::Reconnect(_) | Action::Resume(_) | Action::Flow(_) | Action::Overtake(_) => 20,
        Action::ServeLate(_) | Action::ForgetAgain(_) | Action::DropInbox(_) => 10,
        Action::Arrive(_) => 8,
        Action::Yield(_) | Action::Renew(_) => 6,
        Action::SlowTick | Action::LagTick(_) => 4,
        Action::Cancel(_) | Action::ForeignEnds | Action::LosePush(..) => 3,
        Action::Cut(..) | Action::Pause(_) | Action::Stall(_) | Action::Flush => 2,
        Action::Crash(..) => 1,
    }
}
