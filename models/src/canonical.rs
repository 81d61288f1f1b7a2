//! States that differ only in names are one.
//!
//! Serials of tokens and fencing numbers grow for ever, but only their order and, between numbers,
//! gaps of up to a block matter; managers that are alike may change places. So a state is hashed by
//! a representative, and kept as it is, that traces can be read.

use std::hash::{Hash, Hasher};

use crate::{
    message::{Block, Push, Reply, Request, Token},
    state::{Flight, Ghost, Lease, Manager, Phase, Server, World},
};

/// A state of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub(crate) world: World,
    /// The largest gap between numbers that matters.
    pub(crate) gap: u16,
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        representative(&self.world, self.gap).hash(hasher);
    }
}

fn representative(world: &World, gap: u16) -> World {
    let mut world = world.clone();
    close_gaps(&mut world, gap);
    rename_tokens(&mut world);
    for manager in &mut world.managers {
        manager.pushes.sort_unstable();
        for Flight { request, reply, .. } in &mut manager.flights {
            // Its answer changes nothing.
            if request.takes_back().is_some() && reply.is_some() {
                *reply = Some(Reply::Done);
            }
        }
    }
    let order: Vec<u8> = (0..).take(world.managers.len()).collect();
    permutations(&order).iter().map(|places| rearranged(&world, places)).min().unwrap_or(world)
}

/// All orders of `items`, of which there are two or three.
fn permutations(items: &[u8]) -> Vec<Vec<u8>> {
    if items.len() <= 1 {
        return vec![items.to_vec()];
    }
    let mut orders = Vec::new();
    for (place, &first) in items.iter().enumerate() {
        let rest = [&items[..place], &items[place + 1..]].concat();
        for mut order in permutations(&rest) {
            order.insert(0, first);
            orders.push(order);
        }
    }
    orders
}

/// `places[m]` is where manager `m` goes.
fn rearranged(world: &World, places: &[u8]) -> World {
    let mut moved = world.clone();
    for (manager, &place) in world.managers.iter().zip(places) {
        moved.managers[usize::from(place)] = manager.clone();
    }
    each_token(&mut moved, &mut |token| {
        if *token != Token::FOREIGN {
            token.manager = places[usize::from(token.manager)];
        }
    });
    for manager in &mut moved.managers {
        manager.pushes.sort_unstable();
    }
    moved
}

fn close_gaps(world: &mut World, gap: u16) {
    let mut numbers = Vec::with_capacity(16);
    each_number(world, &mut |number| numbers.push(*number));
    numbers.sort_unstable();
    numbers.dedup();
    let mut closed = Vec::with_capacity(numbers.len());
    let mut next = 0;
    let mut last = 0;
    for &number in &numbers {
        next += (number - last).min(gap);
        last = number;
        closed.push(next);
    }
    each_number(world, &mut |number| {
        if let Ok(place) = numbers.binary_search(number) {
            *number = closed[place];
        }
    });
}

fn rename_tokens(world: &mut World) {
    let mut tokens = Vec::with_capacity(16);
    each_token(world, &mut |token| tokens.push(*token));
    tokens.sort_unstable();
    tokens.dedup();
    each_token(world, &mut |token| {
        let older = |other: &&Token| other.manager == token.manager && other.serial < token.serial;
        let rank = tokens.iter().filter(older).count();
        token.serial = u16::try_from(rank).unwrap_or(u16::MAX);
    });
    for manager in &mut world.managers {
        // Only that it is new matters of the next one.
        manager.serial = 0;
    }
}

fn each_token(world: &mut World, visit: &mut impl FnMut(&mut Token)) {
    let World { server, managers, ghost: _, budget: _ } = world;
    let Server { lock, fence: _, waiting, waiting_ttl: _, time: _, epoch: _ } = server;
    lock.iter_mut().for_each(|record| visit(&mut record.token));
    waiting.iter_mut().for_each(&mut *visit);
    for manager in managers {
        let Manager { phase, flights, late, unsent, strays, pushes, .. } = manager;
        strays.iter_mut().for_each(&mut *visit);
        match phase {
            Phase::Idle | Phase::Yielded { .. } => {}
            Phase::Asking { token, .. }
            | Phase::Registered { token, .. }
            | Phase::Holding(Lease { token, .. })
            | Phase::Releasing { token, .. } => visit(token),
            Phase::Passing { old, new, .. } => {
                visit(old);
                visit(new);
            }
        }
        let requests = flights.iter_mut().map(|flight| &mut flight.request);
        for request in requests.chain(late).chain(unsent) {
            match request {
                Request::Acquire { token, .. }
                | Request::Release { token, .. }
                | Request::Extend { token, .. }
                | Request::Forget { token } => visit(token),
                Request::Pass { token, new, .. } => {
                    visit(token);
                    visit(new);
                }
            }
        }
        for push in pushes {
            match push {
                Push::Grant(token) | Push::Demand(token) | Push::Yielded(token) => visit(token),
            }
        }
    }
}

fn each_number(world: &mut World, visit: &mut impl FnMut(&mut u16)) {
    let World { server, managers, ghost, budget: _ } = world;
    let Server { lock: _, fence, waiting: _, waiting_ttl: _, time, epoch: _ } = server;
    let Ghost { top, used, .. } = ghost;
    [time, top, used].into_iter().chain(fence).for_each(&mut *visit);
    let mut both = |Block { low, high }: &mut Block| {
        visit(low);
        visit(high);
    };
    for manager in managers {
        if let Phase::Holding(Lease { block: Some(block), .. }) = &mut manager.phase {
            both(block);
        }
        for flight in &mut manager.flights {
            if let Flight { reply: Some(Reply::Got { block, .. }), .. } = flight {
                both(block);
            }
        }
    }
}
