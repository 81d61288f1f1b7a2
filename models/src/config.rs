//! What is checked: how many take part, what may go wrong, and which rule is left out.

/// Lengths of time, in ticks. A tick is the step in which all clocks move.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// A lease.
    pub expire: u8,
    /// What a manager takes off its lease for the difference of two clocks.
    pub drift: u8,
    /// The short lease that a grant comes with.
    pub claim: u8,
    /// The longest pause of a registered manager.
    pub cap: u8,
    /// How long a waiting list outlives the last request to wait.
    pub wait: u8,
}

/// Which faults may happen, up to the number in [`Config::faults`].
#[derive(Clone, Copy, Debug)]
pub struct Kinds {
    /// A connection is cut. Its replies are lost, its requests may be carried out later.
    pub cut: bool,
    /// A process dies.
    pub crash: bool,
    /// A process is stopped for some time, in which its clock goes on.
    pub pause: bool,
    /// The server loses its data, once.
    pub flush: bool,
    /// A push is lost.
    pub lost_push: bool,
    /// A tick passes while requests, replies or pushes are on their way.
    pub slow: bool,
    /// Nothing moves on a connection for some time.
    pub stall: bool,
    /// The clock of a process falls behind by a tick.
    pub lag: bool,
}

impl Kinds {
    /// No fault at all.
    pub const NONE: Self = Self {
        cut: false,
        crash: false,
        pause: false,
        flush: false,
        lost_push: false,
        slow: false,
        stall: false,
        lag: false,
    };
    /// Every kind.
    pub const ALL: Self = Self {
        cut: true,
        crash: true,
        pause: true,
        flush: true,
        lost_push: true,
        slow: true,
        stall: true,
        lag: true,
    };
}

/// A rule of the protocol that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Broken {
    /// A grant lets its receiver hold at once, counted from when the push arrived.
    ValidityFromPush,
    /// A lease is counted from when the reply arrived.
    ValidityFromReply,
    /// Nothing is taken off the lease for the difference of two clocks.
    NoDrift,
    /// A reply makes a lease valid again that had run out.
    Revival,
    /// A manager that keeps the lock in a pass goes on under the old token.
    TokenReusedInPass,
    /// A token whose request was cut off is asked under again over the next connection.
    AskAgainAfterCut,
    /// A token whose request was cut off is forgotten at once, and not again later.
    NoForgetOfStrays,
    /// A registered manager sleeps for as long as the holder's lease lasts.
    NoTimerCap,
    /// A registered manager waits for a push alone.
    NoTimer,
    /// Blocks of numbers are reserved ahead of the server's time.
    ForwardBlocks,
    /// A block is filled up backwards though the last number is not known.
    BackwardBlockWithoutFence,
    /// A release deletes the record of any owner.
    DeleteWithoutCompare,
    /// The token of a waiter that gives up stays in the waiting list.
    NoForgetOfWait,
    /// A lock that comes when no caller waits any more is not released.
    NoReleaseWithoutWaiters,
    /// After a pass was cut off, the old token only is forgotten.
    ForgetOldOnlyInPass,
    /// A grant for a token that is over is ignored.
    NoForgetOfGrant,
    /// A grant that overtakes the reply to an earlier request is ignored.
    GrantIgnoredWhileAsking,
    /// Releases and forgets that were not answered over a connection are not sent over the next.
    UnansweredForgetsDropped,
    /// After a connection was replaced, nothing is asked again.
    NoAskOnReconnect,
    /// A lease is set to what is asked for, though more is left of it.
    LoweredLease,
    /// A grant is not taken out of the waiting list, nor is a token that has got the lock.
    GrantStaysInList,
    /// The manager yields, and no registered manager is told.
    NoneToldOfYield,
    /// A member that leaves the list while the lock is free leaves it to the timers of the others.
    ForgetLeavesFree,
}

/// One model.
#[derive(Clone, Debug)]
pub struct Config {
    /// Managers, each a process with a connection of its own.
    pub managers: u8,
    /// Local waiters of each manager; each runs one critical section.
    pub waiters: u8,
    /// How many faults happen at most.
    pub faults: u8,
    /// Which.
    pub kinds: Kinds,
    /// Whether every second waiter of a manager asks for a shorter lease than the others.
    pub mixed: bool,
    /// How many waiters give up at most.
    pub cancels: u8,
    /// How many renewals there are at most.
    pub renewals: u8,
    /// How often at most a manager leaves the lock free for a moment.
    pub yields: u8,
    /// The most numbers reserved at a time.
    pub block: u16,
    /// How many numbers' worth of time goes by at least between two reservations.
    pub pace: u16,
    /// Whether the server permits pushes.
    pub push: bool,
    /// Whether a process that knows nothing of the protocol holds the lock at first.
    pub foreign: bool,
    /// Lengths of time.
    pub times: Times,
    /// The rule that is left out.
    pub broken: Option<Broken>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            managers: 2,
            waiters: 2,
            faults: 1,
            kinds: Kinds::ALL,
            mixed: false,
            cancels: 0,
            renewals: 0,
            yields: 0,
            block: 2,
            pace: 1,
            push: true,
            foreign: false,
            times: Times { expire: 4, drift: 1, claim: 1, cap: 2, wait: 4 },
            broken: None,
        }
    }
}

impl Config {
    /// How long a request that succeeds lets its sender hold, counted from when it was sent.
    pub(crate) fn validity(&self, expire: u8) -> u8 {
        if self.breaks(Broken::NoDrift) { expire } else { expire - self.times.drift }
    }

    pub(crate) fn breaks(&self, rule: Broken) -> bool {
        self.broken == Some(rule)
    }
}
