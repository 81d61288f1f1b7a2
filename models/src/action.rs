//! What may happen next.

use crate::{
    config::Config,
    message::{Request, Token},
    state::{Health, Inbox, Manager, Phase, World},
};

/// One step. The number is the manager to which it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A waiter comes.
    Arrive(u8),
    /// A waiter gives up.
    Cancel(u8),
    /// The critical section ends, and the next local waiter runs under the same lease.
    HandOver(u8),
    /// The critical section ends, and the lock is released or passed on.
    End(u8),
    /// The section ends, and the manager yields the lock, with or without waiters.
    Yield(u8),
    /// The lease is to be extended.
    Renew(u8),
    /// The lease's time is over.
    Lose(u8),
    /// A registered manager's pause is over.
    Timer(u8),
    /// The server carries out the next request of the connection.
    Serve(u8),
    /// The server carries out a pass before the release that went out before it, over another
    /// connection.
    Overtake(u8),
    /// The server carries out the next request of a connection that was cut.
    ServeLate(u8),
    /// What may have been left behind by a cut connection is forgotten again.
    ForgetAgain(u8),
    /// The next reply is read.
    Reply(u8),
    /// A push is read.
    Push(u8, usize),
    /// A push is lost.
    LosePush(u8, usize),
    /// The connection is cut; so many of its requests reach the server all the same.
    Cut(u8, usize),
    /// A new connection.
    Reconnect(u8),
    /// The server notices that a subscription is over.
    DropInbox(u8),
    /// The process dies; so many of its requests reach the server all the same.
    Crash(u8, usize),
    /// The process is stopped.
    Pause(u8),
    /// It goes on.
    Resume(u8),
    /// The connection stands still.
    Stall(u8),
    /// It moves again.
    Flow(u8),
    /// The server loses its data.
    Flush,
    /// The foreign holder deletes its record.
    ForeignEnds,
    /// Time goes by.
    Tick,
    /// Time goes by while something is on its way.
    SlowTick,
    /// Time goes by, but not on the clock of this manager.
    LagTick(u8),
}

impl Action {
    /// The manager to which it happens.
    #[must_use]
    pub fn manager(self) -> Option<u8> {
        match self {
            Self::Arrive(id)
            | Self::Cancel(id)
            | Self::HandOver(id)
            | Self::End(id)
            | Self::Yield(id)
            | Self::Renew(id)
            | Self::Lose(id)
            | Self::Timer(id)
            | Self::Serve(id)
            | Self::Overtake(id)
            | Self::ServeLate(id)
            | Self::ForgetAgain(id)
            | Self::Reply(id)
            | Self::Push(id, _)
            | Self::LosePush(id, _)
            | Self::Cut(id, _)
            | Self::Reconnect(id)
            | Self::DropInbox(id)
            | Self::Crash(id, _)
            | Self::Pause(id)
            | Self::Resume(id)
            | Self::Stall(id)
            | Self::Flow(id)
            | Self::LagTick(id) => Some(id),
            Self::Flush | Self::ForeignEnds | Self::Tick | Self::SlowTick => None,
        }
    }
}

/// Collects what may happen in `world`.
pub(crate) fn collect(config: &Config, world: &World, actions: &mut Vec<Action>) {
    for (id, manager) in (0..).zip(&world.managers) {
        by_itself(config, world, id, manager, actions);
        on_the_way(id, manager, actions);
        if world.budget.faults > 0 {
            faults(config, id, manager, actions);
        }
    }
    if world.server.lock.is_some_and(|record| record.token == Token::FOREIGN) {
        actions.push(Action::ForeignEnds);
    }
    if config.kinds.flush && world.budget.faults > 0 && world.server.epoch == 0 {
        actions.push(Action::Flush);
    }
    ticks(config, world, actions);
}

fn by_itself(config: &Config, world: &World, id: u8, manager: &Manager, actions: &mut Vec<Action>) {
    if manager.health != Health::Up {
        return;
    }
    if manager.to_come > 0 {
        actions.push(Action::Arrive(id));
    }
    if manager.queue > 0 && world.budget.cancels > 0 {
        actions.push(Action::Cancel(id));
    }
    match manager.phase {
        Phase::Registered { timer: Some(0), .. } | Phase::Yielded { timer: 0 } => {
            actions.push(Action::Timer(id));
        }
        Phase::Holding(lease) if lease.validity == 0 => actions.push(Action::Lose(id)),
        Phase::Holding(lease) => {
            actions.push(Action::End(id));
            if manager.queue > 0 && lease.block.is_some_and(|block| block.left() > 0) {
                actions.push(Action::HandOver(id));
            }
            if world.budget.yields > 0 {
                actions.push(Action::Yield(id));
            }
            if world.budget.renewals > 0 && lease.validity < config.validity(config.times.expire) {
                actions.push(Action::Renew(id));
            }
        }
        _ => {}
    }
}

fn on_the_way(id: u8, manager: &Manager, actions: &mut Vec<Action>) {
    if manager.stalled {
        actions.push(Action::Flow(id));
    } else if manager.flights.iter().any(|flight| flight.reply.is_none()) {
        actions.push(Action::Serve(id));
        if overtaking(manager).is_some() {
            actions.push(Action::Overtake(id));
        }
    }
    if !manager.late.is_empty() {
        actions.push(Action::ServeLate(id));
    } else if !manager.strays.is_empty() && manager.connected && manager.health == Health::Up {
        // What is forgotten before is as if it were not.
        actions.push(Action::ForgetAgain(id));
    }
    if manager.inbox == Inbox::Stale {
        actions.push(Action::DropInbox(id));
    }
    match manager.health {
        Health::Up => {
            if manager.stalled {
                return;
            }
            if manager.flights.first().is_some_and(|flight| flight.reply.is_some()) {
                actions.push(Action::Reply(id));
            }
            actions.extend((0..manager.pushes.len()).map(|push| Action::Push(id, push)));
            if !manager.connected {
                actions.push(Action::Reconnect(id));
            }
        }
        Health::Paused => actions.push(Action::Resume(id)),
        Health::Crashed => {}
    }
}

/// The places of a pass and of the release before it, neither of which was carried out.
pub(crate) fn overtaking(manager: &Manager) -> Option<(usize, usize)> {
    let open = |wanted: &dyn Fn(Request) -> bool| {
        manager.flights.iter().position(|flight| flight.reply.is_none() && wanted(flight.request))
    };
    let pass = open(&|request| matches!(request, Request::Pass { .. }))?;
    let Request::Pass { token: old, .. } = manager.flights[pass].request else { return None };
    let release =
        open(&|request| matches!(request, Request::Release { token, .. } if token == old))?;
    (release < pass).then_some((pass, release))
}

fn faults(config: &Config, id: u8, manager: &Manager, actions: &mut Vec<Action>) {
    let kinds = config.kinds;
    if kinds.lost_push {
        actions.extend((0..manager.pushes.len()).map(|push| Action::LosePush(id, push)));
    }
    let unserved = manager.flights.iter().filter(|flight| flight.reply.is_none()).count();
    if kinds.cut && manager.connected {
        actions.extend((0..=unserved).map(|late| Action::Cut(id, late)));
    }
    if kinds.stall && manager.connected && !manager.stalled {
        actions.push(Action::Stall(id));
    }
    if manager.health == Health::Up {
        if kinds.crash {
            actions.extend((0..=unserved).map(|late| Action::Crash(id, late)));
        }
        if kinds.pause {
            actions.push(Action::Pause(id));
        }
    }
}

/// What a process does by its own clock is done before the clock goes on. What is on its way
/// arrives before, too, unless the network is slow.
fn ticks(config: &Config, world: &World, actions: &mut Vec<Action>) {
    let counted = world.server.lock.is_some()
        || !world.server.waiting.is_empty()
        || world.managers.iter().any(|manager| {
            let is_aside = matches!(manager.phase, Phase::Yielded { .. });
            manager.waits() || manager.holds().is_some() || is_aside
        });
    if !counted || world.managers.iter().any(is_due) {
        return;
    }
    let slow = world.managers.iter().any(is_awaited);
    if slow {
        if config.kinds.slow && world.budget.faults > 0 {
            actions.push(Action::SlowTick);
        }
        return;
    }
    actions.push(Action::Tick);
    if world.budget.lags > 0 && world.budget.faults > 0 {
        let live = (0..).zip(&world.managers).filter(|(_, m)| m.health != Health::Crashed);
        actions.extend(live.map(|(id, _)| Action::LagTick(id)));
    }
}

fn is_due(manager: &Manager) -> bool {
    manager.health == Health::Up
        && match manager.phase {
            Phase::Registered { timer, .. } => timer == Some(0),
            Phase::Yielded { timer } => timer == 0,
            Phase::Holding(lease) => lease.validity == 0,
            _ => false,
        }
}

fn is_awaited(manager: &Manager) -> bool {
    if manager.stalled {
        return false;
    }
    let up = manager.health == Health::Up;
    manager.flights.iter().any(|flight| up || flight.reply.is_none())
        || up && (!manager.connected || !manager.pushes.is_empty())
}
