//! What a trace shows: as much as is seen from outside of a manager and of the server.

use crate::{
    message::{Block, Push, Reply, Request, Token},
    state::{Flight, Health, Inbox, Lease, Manager, Phase, World},
    step::Served,
};

/// The server's records and the managers, after a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// `L`.
    pub lock: Option<LockView>,
    /// `F`, in the model's numbers. `None`: the record is absent.
    pub fence: Option<u16>,
    /// `W`, in the order of its scores.
    pub waiting: Vec<Token>,
    /// How many ticks `W` lives on. 0 if it is empty.
    pub waiting_ttl: u8,
    /// The server's time, in the unit of the numbers.
    pub time: u16,
    /// In the order of their numbers.
    pub managers: Vec<ManagerView>,
}

/// `L`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockView {
    /// Whose it is: [`Token::FOREIGN`] if not one of ours.
    pub token: Token,
    /// How many ticks it lives on.
    pub ttl: u8,
}

/// A manager, for the one key that there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagerView {
    /// What became of its process.
    pub health: Health,
    /// Whether it has a connection.
    pub connected: bool,
    /// Whether nothing moves on that.
    pub stalled: bool,
    /// What the server thinks of its inbox.
    pub inbox: Inbox,
    /// What it is about.
    pub phase: PhaseView,
    /// Waiters that have not come yet.
    pub to_come: u8,
    /// Waiters in the local queue, without the one whose section runs.
    pub queue: u8,
    /// Requests on the connection, in the order in which they are answered, and whether the server
    /// has carried them out.
    pub flights: Vec<(Request, bool)>,
    /// Requests of cut connections that will still be carried out, in this order.
    pub late: Vec<Request>,
    /// Releases and forgets that are sent first over the next connection.
    pub unsent: Vec<Request>,
    /// Pushes on their way, each of them once. A push of the same content that was published again
    /// before the first one was read is not a second one.
    pub pushes: Vec<Push>,
}

/// What a manager is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseView {
    /// No caller waits, and no lock is held.
    Idle,
    /// The acquisition is out, or will be as soon as there is a connection.
    Asking {
        /// Under this token.
        token: Token,
        /// A grant for it was read since.
        granted: bool,
    },
    /// A timer runs, after which the token is asked under again.
    Registered {
        /// The token.
        token: Token,
        /// How many ticks are left.
        timer: Option<u8>,
    },
    /// A section runs.
    Holding {
        /// Under this token.
        token: Token,
        /// For how many ticks the lease is still valid by the manager's clock.
        validity: u8,
        /// How many numbers are left for hand-overs.
        left: u16,
    },
    /// The pass is out, or will be as soon as there is a connection.
    Passing {
        /// The token that is over.
        old: Token,
        /// The token that is asked under.
        new: Token,
        /// A grant for the new token was read since.
        granted: bool,
    },
    /// The release is out, and no waiter has come since.
    Releasing {
        /// Of this token.
        token: Token,
        /// Whether the lock is left free for a moment.
        yields: bool,
    },
    /// The lock was left free, and no waiter has come since.
    Yielded {
        /// For how many ticks a waiter that comes leaves the lock to other managers.
        timer: u8,
    },
}

/// What the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The lock is the asker's.
    Got {
        /// In the model's numbers: only their order, and how many they are, compare.
        block: Block,
        /// Whether others are in `W`.
        others: bool,
    },
    /// The lock is taken.
    Busy {
        /// For how many ticks, unless it is extended.
        ttl: u8,
        /// Whether the holder knows nothing of the protocol.
        foreign: bool,
    },
    /// After a pass the lock is free: no member of the list had a receiver, or the pass yielded.
    Free,
    /// The lease was extended.
    Kept {
        /// Whether others are in `W`.
        others: bool,
    },
    /// The lease was not extended: the record is not the asker's.
    Lost,
    /// A release or forget has given the lock on.
    Released,
    /// A release or forget met another record, or none.
    NotHeld,
}

/// A request that the server has carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedView {
    /// The request.
    pub request: Request,
    /// What is answered to it.
    pub answer: Answer,
    /// What was published to inboxes that are read.
    pub published: Vec<Push>,
}

impl ServedView {
    /// `world` is that after the request.
    pub(crate) fn new(served: Served, world: &World) -> Self {
        let others = !world.server.waiting.is_empty();
        let foreign = world.server.lock.is_some_and(|record| record.token == Token::FOREIGN);
        let answer = match served.reply {
            Reply::Got { block, .. } => Answer::Got { block, others },
            Reply::Busy { ttl } => Answer::Busy { ttl, foreign },
            Reply::Free => Answer::Free,
            Reply::Kept => Answer::Kept { others },
            Reply::Done => Answer::Released,
            Reply::Lost if served.request.takes_back().is_some() => Answer::NotHeld,
            Reply::Lost => Answer::Lost,
        };
        Self { request: served.request, answer, published: served.published }
    }
}

impl From<&World> for View {
    fn from(world: &World) -> Self {
        let server = &world.server;
        Self {
            lock: server.lock.map(|record| LockView { token: record.token, ttl: record.ttl }),
            fence: server.fence,
            waiting: server.waiting.clone(),
            waiting_ttl: server.waiting_ttl,
            time: server.time,
            managers: world.managers.iter().map(ManagerView::from).collect(),
        }
    }
}

impl From<&Manager> for ManagerView {
    fn from(manager: &Manager) -> Self {
        let flight = |flight: &Flight| (flight.request, flight.reply.is_some());
        Self {
            health: manager.health,
            connected: manager.connected,
            stalled: manager.stalled,
            inbox: manager.inbox,
            phase: manager.phase.into(),
            to_come: manager.to_come,
            queue: manager.queue,
            flights: manager.flights.iter().map(flight).collect(),
            late: manager.late.clone(),
            unsent: manager.unsent.clone(),
            pushes: manager.pushes.clone(),
        }
    }
}

impl From<Phase> for PhaseView {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Idle => Self::Idle,
            Phase::Asking { token, granted } => Self::Asking { token, granted },
            Phase::Registered { token, timer } => Self::Registered { token, timer },
            Phase::Holding(Lease { token, validity, block, .. }) => {
                Self::Holding { token, validity, left: block.map_or(0, Block::left) }
            }
            Phase::Passing { old, new, granted } => Self::Passing { old, new, granted },
            Phase::Releasing { token, yields } => Self::Releasing { token, yields },
            Phase::Yielded { timer } => Self::Yielded { timer },
        }
    }
}
