//! What each action does to the world.

use crate::{
    action::{Action, overtaking},
    config::{Broken, Config},
    manager::{Desk, Section},
    message::{Push, Reply, Request},
    scripts::Execution,
    state::{Claim, Health, Inbox, Phase, World},
};

/// A request that the server has carried out.
pub(crate) struct Served {
    pub(crate) request: Request,
    pub(crate) reply: Reply,
    pub(crate) published: Vec<Push>,
}

/// What a step has brought about beside the new state.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) served: Option<Served>,
    pub(crate) section: Option<Section>,
}

pub(crate) fn apply(config: &Config, world: &mut World, action: Action) -> Effects {
    let mut effects = Effects::default();
    match action {
        Action::Arrive(id) => desk(config, world, id).arrive(),
        Action::Cancel(id) => {
            world.budget.cancels -= 1;
            desk(config, world, id).cancel();
        }
        Action::HandOver(id) => {
            effects.section = desk(config, world, id).hand_over();
            began(world, id, effects.section);
        }
        Action::End(id) => desk(config, world, id).end_section(),
        Action::Yield(id) => {
            world.budget.yields -= 1;
            desk(config, world, id).yield_lock();
        }
        Action::Renew(id) => {
            world.budget.renewals -= 1;
            desk(config, world, id).renew();
        }
        Action::Lose(id) => desk(config, world, id).lose(),
        Action::Timer(id) => desk(config, world, id).timer(),
        Action::Serve(id) => {
            let flights = &world.managers[usize::from(id)].flights;
            let next = flights.iter().position(|flight| flight.reply.is_none());
            effects.served = next.map(|next| serve(config, world, id, next));
        }
        Action::Overtake(id) => {
            let manager = &mut world.managers[usize::from(id)];
            if let Some((pass, release)) = overtaking(manager) {
                let pass = manager.flights.remove(pass);
                manager.flights.insert(release, pass);
                effects.served = Some(serve(config, world, id, release));
            }
        }
        Action::ServeLate(id) => {
            let request = world.managers[usize::from(id)].late.remove(0);
            effects.served = Some(execute(config, world, request));
        }
        Action::ForgetAgain(id) => desk(config, world, id).forget_strays(),
        Action::Reply(id) => {
            let flight = world.managers[usize::from(id)].flights.remove(0);
            effects.section = desk(config, world, id).on_reply(flight);
            began(world, id, effects.section);
        }
        Action::Push(id, push) => {
            let push = world.managers[usize::from(id)].pushes.remove(push);
            effects.section = desk(config, world, id).on_push(push);
            began(world, id, effects.section);
        }
        Action::Reconnect(id) => {
            world.ghost.idle = 0;
            desk(config, world, id).reconnect();
        }
        Action::DropInbox(id) => world.managers[usize::from(id)].inbox = Inbox::Gone,
        Action::Resume(id) => {
            world.ghost.idle = 0;
            world.managers[usize::from(id)].health = Health::Up;
        }
        Action::Flow(id) => {
            world.ghost.idle = 0;
            world.managers[usize::from(id)].stalled = false;
        }
        Action::ForeignEnds => world.server.lock = None,
        Action::Tick => tick(config, world, None, true),
        Action::SlowTick
        | Action::LagTick(_)
        | Action::LosePush(..)
        | Action::Cut(..)
        | Action::Crash(..)
        | Action::Pause(_)
        | Action::Stall(_)
        | Action::Flush => {
            world.budget.faults -= 1;
            fail(config, world, action);
        }
    }
    drop_gone_strays(world);
    effects
}

/// Once nothing is late any more, forgetting what is neither in the record nor in the list makes no
/// difference.
fn drop_gone_strays(world: &mut World) {
    let World { server, managers, .. } = world;
    for manager in managers.iter_mut().filter(|manager| manager.late.is_empty()) {
        manager.strays.retain(|token| {
            server.waiting.contains(token)
                || server.lock.is_some_and(|record| record.token == *token)
        });
    }
}

fn fail(config: &Config, world: &mut World, fault: Action) {
    match fault {
        Action::SlowTick => tick(config, world, None, false),
        Action::LagTick(id) => {
            world.budget.lags -= 1;
            tick(config, world, Some(id), false);
        }
        Action::LosePush(id, push) => {
            let push = world.managers[usize::from(id)].pushes.remove(push);
            if matches!(push, Push::Grant(_)) {
                excuse(world, id);
            }
        }
        Action::Cut(id, late) => {
            cut(config, world, id, late);
            desk(config, world, id).disconnect();
        }
        Action::Crash(id, late) => {
            cut(config, world, id, late);
            desk(config, world, id).crash();
        }
        Action::Pause(id) => {
            excuse(world, id);
            world.managers[usize::from(id)].health = Health::Paused;
        }
        Action::Stall(id) => {
            excuse(world, id);
            world.managers[usize::from(id)].stalled = true;
        }
        Action::Flush => {
            let server = &mut world.server;
            server.lock = None;
            server.fence = None;
            server.waiting.clear();
            server.waiting_ttl = 0;
            server.epoch += 1;
        }
        _ => {}
    }
}

fn desk<'a>(config: &'a Config, world: &'a mut World, id: u8) -> Desk<'a> {
    Desk { config, id, manager: &mut world.managers[usize::from(id)] }
}

fn serve(config: &Config, world: &mut World, id: u8, next: usize) -> Served {
    let served = execute(config, world, world.managers[usize::from(id)].flights[next].request);
    world.managers[usize::from(id)].flights[next].reply = Some(served.reply);
    served
}

fn execute(config: &Config, world: &mut World, request: Request) -> Served {
    let inboxes: Vec<_> = world.managers.iter().map(|manager| manager.inbox).collect();
    let World { server, ghost, .. } = world;
    let mut execution =
        Execution { config, server, ghost, inboxes: &inboxes, published: Vec::new() };
    let reply = execution.run(request);
    if execution.server.lock.is_some() {
        execution.ghost.idle = 0;
    }
    let published = execution.published;
    for &push in &published {
        let manager = &mut world.managers[usize::from(push.token().manager)];
        // Reading the same push twice in a row is reading it once.
        if !manager.pushes.contains(&push) {
            manager.pushes.push(push);
        }
        if manager.health == Health::Paused || manager.stalled {
            excuse(world, push.token().manager);
        }
    }
    Served { request, reply, published }
}

/// What the properties keep of a section that began.
fn began(world: &mut World, id: u8, section: Option<Section>) {
    let Some(section) = section else { return };
    for (other, manager) in (0..).zip(&mut world.managers) {
        if let Phase::Holding(lease) = &mut manager.phase
            && other != id
            && lease.validity == 0
        {
            lease.overtaken = true;
        }
    }
    // A lease from before the server lost its data may bring any number: fenced writes refuse it.
    if let Some(number) = section.number
        && section.epoch == world.server.epoch
    {
        world.ghost.disordered |= number <= world.ghost.used;
        world.ghost.used = number;
    }
}

/// Both sides lose the connection; the server may be late to notice.
fn cut(config: &Config, world: &mut World, id: u8, late: usize) {
    excuse(world, id);
    let manager = &mut world.managers[usize::from(id)];
    let unserved = manager.flights.iter().filter(|flight| flight.reply.is_none());
    let late = unserved.map(|flight| flight.request).take(late);
    for request in late {
        manager.late.push(request);
        // The manager does not know which requests are lost, and forgets again for each. Here it
        // does so where that makes a difference.
        if !config.breaks(Broken::AskAgainAfterCut) && !config.breaks(Broken::NoForgetOfStrays) {
            manager.strays.extend(request.asks_under());
        }
    }
    manager.pushes.clear();
    if manager.inbox == Inbox::Live {
        manager.inbox = Inbox::Stale;
    }
}

fn excuse(world: &mut World, id: u8) {
    if let Some(record) = &mut world.server.lock
        && record.token.manager == id
        && record.claim == Claim::Granted
    {
        record.claim = Claim::Excused;
    }
}

fn tick(config: &Config, world: &mut World, lagging: Option<u8>, calm: bool) {
    let waited = world.managers.iter().any(|manager| manager.waits());
    let held = world.managers.iter().any(|manager| manager.holds().is_some());
    if world.server.lock.is_some() || held || !waited {
        world.ghost.idle = 0;
    } else if calm {
        world.ghost.idle += 1;
    }
    world.server.time += config.block;
    if world.server.lock.is_some_and(|record| record.ttl <= 1) {
        lock_expires(world);
    } else if let Some(record) = &mut world.server.lock {
        record.ttl -= 1;
    }
    if world.server.waiting_ttl == 1 {
        world.server.waiting.clear();
    }
    world.server.waiting_ttl = world.server.waiting_ttl.saturating_sub(1);
    for (id, manager) in (0..).zip(&mut world.managers) {
        if Some(id) == lagging {
            continue;
        }
        match &mut manager.phase {
            Phase::Registered { timer: Some(timer), .. } | Phase::Yielded { timer } => {
                *timer = timer.saturating_sub(1);
            }
            Phase::Holding(lease) => lease.validity = lease.validity.saturating_sub(1),
            _ => {}
        }
        for flight in &mut manager.flights {
            flight.validity = flight.validity.saturating_sub(1);
        }
    }
}

fn lock_expires(world: &mut World) {
    if let Some(record) = world.server.lock.take()
        && record.claim == Claim::Granted
    {
        let manager = &world.managers[usize::from(record.token.manager)];
        world.ghost.lapsed |= manager.flights.is_empty() && manager.pushes.is_empty();
    }
}
