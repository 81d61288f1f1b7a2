//! What a state of the model is made of.

use crate::message::{Block, Push, Reply, Request, Token};

/// How the record came to its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// It was asked for.
    Asked,
    /// It was granted, and the one it was granted to is able to know.
    Granted,
    /// It was granted, and a fault came between.
    Excused,
}

/// `L`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Record {
    pub(crate) token: Token,
    pub(crate) ttl: u8,
    pub(crate) claim: Claim,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Server {
    /// `L`.
    pub(crate) lock: Option<Record>,
    /// `F`.
    pub(crate) fence: Option<u16>,
    /// `W`, in the order of its scores.
    pub(crate) waiting: Vec<Token>,
    pub(crate) waiting_ttl: u8,
    /// In the unit of the numbers.
    pub(crate) time: u16,
    /// How often the data was lost.
    pub(crate) epoch: u8,
}

/// A request, and its reply as soon as the server has carried it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Flight {
    pub(crate) request: Request,
    /// How long the sender may hold, if it succeeds: counted down from when it was sent.
    pub(crate) validity: u8,
    pub(crate) reply: Option<Reply>,
}

/// What became of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Health {
    /// It runs.
    Up,
    /// It is stopped, while its clock goes on.
    Paused,
    /// It is dead.
    Crashed,
}

/// What the server thinks of a manager's subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Inbox {
    /// There is none.
    Gone,
    /// There is one, and it is read.
    Live,
    /// The other side is gone, which the server has not noticed.
    Stale,
}

/// A lease, and the critical section that runs under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Lease {
    pub(crate) token: Token,
    /// How long it is still valid on this side.
    pub(crate) validity: u8,
    /// The numbers that are left. None is known while a grant is not yet answered: only where
    /// the rule that a grant is to be answered first is broken.
    pub(crate) block: Option<Block>,
    pub(crate) epoch: u8,
    /// Whether another manager began a section after the validity had run out.
    pub(crate) overtaken: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Phase {
    Idle,
    /// `granted`: a grant for the token was read, which the reply may not know of.
    Asking {
        token: Token,
        granted: bool,
    },
    /// Waits in the list, or without pushes beside it, or pauses under a token that is new.
    Registered {
        token: Token,
        timer: Option<u8>,
    },
    Holding(Lease),
    Passing {
        old: Token,
        new: Token,
        granted: bool,
    },
    /// The release is out, and no caller waits.
    Releasing {
        token: Token,
        yields: bool,
    },
    /// The lock was left free, and no caller waits.
    Yielded {
        timer: u8,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Manager {
    pub(crate) health: Health,
    pub(crate) connected: bool,
    /// Nothing moves on the connection, which is not noticed.
    pub(crate) stalled: bool,
    pub(crate) inbox: Inbox,
    /// Waiters that have not come yet.
    pub(crate) to_come: u8,
    /// Waiters in the local queue, without the one whose section runs.
    pub(crate) queue: u8,
    pub(crate) phase: Phase,
    pub(crate) serial: u16,
    /// The connection: requests in order, those that are carried out first.
    pub(crate) flights: Vec<Flight>,
    /// Requests of cut connections that are still to be carried out.
    pub(crate) late: Vec<Request>,
    /// Releases and forgets that are to be sent over the next connection.
    pub(crate) unsent: Vec<Request>,
    /// Tokens that requests of cut connections may still bring into `L` or `W`.
    pub(crate) strays: Vec<Token>,
    /// Pushes on their way, in no order.
    pub(crate) pushes: Vec<Push>,
}

impl Manager {
    pub(crate) fn holds(&self) -> Option<&Lease> {
        match &self.phase {
            Phase::Holding(lease) if lease.validity > 0 && self.health != Health::Crashed => {
                Some(lease)
            }
            _ => None,
        }
    }

    /// Runs, can reach the server and has a waiter.
    pub(crate) fn waits(&self) -> bool {
        self.health == Health::Up && self.connected && !self.stalled && self.queue > 0
    }
}

/// What the properties need to know about the past.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ghost {
    /// The highest number ever reserved.
    pub(crate) top: u16,
    /// The last number that a critical section was given.
    pub(crate) used: u16,
    /// A number was reserved that is not greater than all before.
    pub(crate) reserved_again: bool,
    /// A number was reserved that lies ahead of the server's time.
    pub(crate) ahead: bool,
    /// A section got a number that is not greater than that of the section before.
    pub(crate) disordered: bool,
    /// A claim ran out though no fault came between.
    pub(crate) lapsed: bool,
    /// Ticks in which the lock was free, a manager waited, and nothing was on its way, since a
    /// fault was over.
    pub(crate) idle: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Budget {
    pub(crate) faults: u8,
    pub(crate) cancels: u8,
    pub(crate) renewals: u8,
    pub(crate) yields: u8,
    /// A clock falls behind once: the drift taken off a lease is good for no more.
    pub(crate) lags: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) managers: Vec<Manager>,
    pub(crate) ghost: Ghost,
    pub(crate) budget: Budget,
}
