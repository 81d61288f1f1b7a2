//! What has to be true in every state, and what has to be possible.

use stateright::Property;

use crate::{
    canonical::State,
    config::Config,
    message::{Reply, Request, Token},
    model::LockModel,
    state::{Claim, Health, Manager, Phase, World},
};

/// No two managers hold the lock at once, each by its own clock.
pub const EXCLUSION: &str = "exclusion";
/// No section goes on under a lease that had run out while another manager held the lock.
pub const NO_REVIVAL: &str = "no revival";
/// Sections get rising numbers, and no number is reserved twice.
pub const NUMBERS: &str = "numbers rise";
/// No number lies ahead of the server's time.
pub const NOT_AHEAD: &str = "numbers are not ahead of time";
/// A lock that is free does not stay so for longer than the cap while a manager waits.
pub const PROGRESS: &str = "a free lock is taken";
/// Without a fault, a yielded lock is taken right after the moment.
pub const YIELDS: &str = "a yielded lock is taken";
/// A waiter has a request on its way, a timer, or a local holder to wait for.
pub const MOVER: &str = "a waiter will be moved";
/// An idle manager has left nothing behind.
pub const CLEAN: &str = "nothing is left behind";
/// No granted lock waits for its claim to run out, unless a fault came between.
pub const CLAIMS: &str = "claims are used";
/// Each of these is always true, in a protocol with all of its rules.
pub const ALWAYS: [&str; 9] =
    [EXCLUSION, NO_REVIVAL, NUMBERS, NOT_AHEAD, PROGRESS, YIELDS, MOVER, CLEAN, CLAIMS];

/// A grant by push is possible.
pub const GRANTED: &str = "a grant is made";
/// A pass that finds the waiting list empty is possible.
pub const KEPT: &str = "a pass is kept";
/// Everything can come to an end without a fault.
pub const DONE: &str = "all come to an end";

pub(crate) fn all() -> Vec<Property<LockModel>> {
    vec![
        Property::always(EXCLUSION, |_, state: &State| excludes(&state.world)),
        Property::always(NO_REVIVAL, |_, state: &State| {
            state.world.managers.iter().filter_map(Manager::holds).all(|lease| !lease.overtaken)
        }),
        Property::always(NUMBERS, |_, state: &State| {
            !state.world.ghost.reserved_again && !state.world.ghost.disordered
        }),
        Property::always(NOT_AHEAD, |_, state: &State| !state.world.ghost.ahead),
        Property::always(PROGRESS, |model: &LockModel, state: &State| {
            state.world.ghost.idle <= model.config.times.cap
        }),
        Property::always(YIELDS, |model: &LockModel, state: &State| {
            let Config { faults, push, foreign, .. } = model.config;
            faults > 0 || !push || foreign || state.world.ghost.idle <= 1
        }),
        Property::always(MOVER, |_, state: &State| state.world.managers.iter().all(will_be_moved)),
        Property::always(CLEAN, |_, state: &State| is_clean(&state.world)),
        Property::always(CLAIMS, |_, state: &State| !state.world.ghost.lapsed),
        Property::sometimes(GRANTED, |model: &LockModel, state: &State| {
            !can_contend(&model.config)
                || !model.config.push
                || state.world.server.lock.is_some_and(|record| record.claim == Claim::Granted)
        }),
        Property::sometimes(KEPT, |model: &LockModel, state: &State| {
            model.config.waiters < 2 || state.world.managers.iter().any(keeps_in_a_pass)
        }),
        Property::sometimes(DONE, |_, state: &State| has_ended(&state.world)),
    ]
}

fn can_contend(config: &Config) -> bool {
    config.managers > 1
}

/// A lease of data that the server has lost since is worth nothing: only numbers help there.
fn excludes(world: &World) -> bool {
    let lasting =
        |manager: &&Manager| manager.holds().is_some_and(|lease| lease.epoch == world.server.epoch);
    let holders = world.managers.iter().filter(lasting).count();
    let foreign = world.server.lock.is_some_and(|record| record.token == Token::FOREIGN);
    holders + usize::from(foreign) <= 1
}

fn will_be_moved(manager: &Manager) -> bool {
    if !manager.waits() {
        return true;
    }
    let asks =
        |wanted| manager.flights.iter().any(|flight| flight.request.asks_under() == Some(wanted));
    match manager.phase {
        Phase::Idle | Phase::Releasing { .. } | Phase::Yielded { .. } => false,
        Phase::Asking { token, .. } | Phase::Passing { new: token, .. } => asks(token),
        Phase::Registered { timer, .. } => timer.is_some(),
        Phase::Holding(_) => true,
    }
}

/// As long as requests of a connection that was cut may be carried out behind what forgets them,
/// it is forgotten again from time to time.
fn is_clean(world: &World) -> bool {
    (0..).zip(&world.managers).all(|(id, manager)| {
        let through = manager.health == Health::Up
            && manager.phase == Phase::Idle
            && manager.connected
            && manager.flights.is_empty()
            && manager.unsent.is_empty()
            && manager.strays.is_empty();
        let listed = || world.server.waiting.iter().any(|token| token.manager == id);
        let recorded = || world.server.lock.is_some_and(|record| record.token.manager == id);
        !through || !(listed() || recorded())
    })
}

fn keeps_in_a_pass(manager: &Manager) -> bool {
    manager.flights.iter().any(|flight| {
        matches!(flight.request, Request::Pass { .. })
            && matches!(flight.reply, Some(Reply::Got { .. }))
    })
}

fn has_ended(world: &World) -> bool {
    world.server.lock.is_none()
        && world.server.waiting.is_empty()
        && world.managers.iter().all(|manager| {
            manager.to_come == 0
                && manager.queue == 0
                && manager.phase == Phase::Idle
                && manager.flights.is_empty()
                && manager.health == Health::Up
        })
}
