//! States as a person reads them in a trace.

use std::fmt::{Display, Formatter, Result};

use crate::{
    canonical::State,
    message::{Block, Push, Reply, Request, Token},
    state::{Flight, Health, Inbox, Lease, Manager, Phase, Record, Server},
};

impl Display for State {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "    {}", self.world.server)?;
        if self.world.ghost.idle > 0 {
            write!(f, "  (free and wanted for {})", self.world.ghost.idle)?;
        }
        for (id, manager) in self.world.managers.iter().enumerate() {
            write!(f, "\n    m{id} {manager}")?;
        }
        Ok(())
    }
}

impl Display for Server {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.lock {
            None => write!(f, "L -")?,
            Some(Record { token, ttl, claim }) => write!(f, "L {token} for {ttl} ({claim:?})")?,
        }
        match self.fence {
            None => write!(f, "  F -")?,
            Some(fence) => write!(f, "  F {fence}")?,
        }
        write!(f, "  time {}  W [", self.time)?;
        each(f, &self.waiting)?;
        write!(f, "] for {}", self.waiting_ttl)
    }
}

impl Display for Manager {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}, {} to come, {} queued", self.phase, self.to_come, self.queue)?;
        if self.health != Health::Up {
            write!(f, ", {:?}", self.health)?;
        }
        if self.stalled {
            write!(f, ", stalled")?;
        }
        if !self.connected {
            write!(f, ", disconnected")?;
        }
        if self.inbox != Inbox::Live {
            write!(f, ", inbox {:?}", self.inbox)?;
        }
        for (name, requests) in [("late", &self.late), ("unsent", &self.unsent)] {
            if !requests.is_empty() {
                write!(f, ", {name}: ")?;
                each(f, requests)?;
            }
        }
        if !self.strays.is_empty() {
            write!(f, ", strays: ")?;
            each(f, &self.strays)?;
        }
        if !self.flights.is_empty() {
            write!(f, ", on the way: ")?;
            each(f, &self.flights)?;
        }
        if !self.pushes.is_empty() {
            write!(f, ", pushed: ")?;
            each(f, &self.pushes)?;
        }
        Ok(())
    }
}

impl Display for Phase {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Idle => write!(f, "idle"),
            Self::Asking { token, granted } => {
                write!(f, "asking {token}{}", if *granted { " (granted)" } else { "" })
            }
            Self::Registered { token, timer: Some(timer) } => {
                write!(f, "registered {token} for {timer}")
            }
            Self::Registered { token, timer: None } => write!(f, "registered {token}"),
            Self::Holding(Lease { token, validity, block, .. }) => {
                write!(f, "HOLDING {token} for {validity}, left ")?;
                match block {
                    Some(block) => write!(f, "{block}"),
                    None => write!(f, "nothing known"),
                }
            }
            Self::Passing { old, new, granted } => {
                let granted = if *granted { " (granted)" } else { "" };
                write!(f, "passing {old}, then {new}{granted}")
            }
            Self::Releasing { token, yields } => {
                write!(f, "releasing {token}{}", name_yield(*yields))
            }
            Self::Yielded { timer } => write!(f, "yielded for {timer}"),
        }
    }
}

impl Display for Flight {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}", self.request)?;
        match self.reply {
            None => {}
            Some(Reply::Got { block, .. }) => write!(f, " = got {block}")?,
            Some(Reply::Busy { ttl }) => write!(f, " = busy for {ttl}")?,
            Some(reply) => write!(f, " = {reply:?}")?,
        }
        match self.request {
            Request::Release { .. } | Request::Forget { .. } => Ok(()),
            _ => write!(f, " (good for {})", self.validity),
        }
    }
}

impl Display for Request {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Acquire { token, block, .. } => write!(f, "acquire({token}, {block})"),
            Self::Release { token, yields } => write!(f, "release({token}{})", name_yield(*yields)),
            Self::Pass { token, new, block, yields, .. } => {
                write!(f, "pass({token}, {new}, {block}{})", name_yield(*yields))
            }
            Self::Extend { token, .. } => write!(f, "extend({token})"),
            Self::Forget { token } => write!(f, "forget({token})"),
        }
    }
}

impl Display for Push {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Grant(token) => write!(f, "grant({token})"),
            Self::Demand(token) => write!(f, "demand({token})"),
            Self::Yielded(token) => write!(f, "yielded({token})"),
        }
    }
}

fn name_yield(yields: bool) -> &'static str {
    if yields { ", yields" } else { "" }
}

/// Numbers that are used up leave none.
impl Display for Block {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.low > self.high {
            write!(f, "none")
        } else {
            write!(f, "{}..{}", self.low, self.high)
        }
    }
}

impl Display for Token {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if *self == Self::FOREIGN {
            write!(f, "foreign")
        } else {
            write!(f, "m{}.{}", self.manager, self.serial)
        }
    }
}

fn each<T: Display>(f: &mut Formatter<'_>, items: &[T]) -> Result {
    for (place, item) in items.iter().enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        write!(f, "{comma}{item}")?;
    }
    Ok(())
}
