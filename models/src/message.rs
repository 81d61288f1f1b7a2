//! What managers and the server tell each other.

/// The manager that a token names, and which of its tokens it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token {
    /// The manager, or [`Token::FOREIGN`]'s.
    pub manager: u8,
    /// Tokens of a manager are numbered from 1 on, in the order in which it makes them.
    pub serial: u16,
}

impl Token {
    /// The token of a holder that knows nothing of the protocol.
    pub const FOREIGN: Self = Self { manager: u8::MAX, serial: 0 };
}

/// What a manager asks the server to do, in one script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Request {
    /// Take the lock, or raise what was granted.
    Acquire {
        /// Under which token.
        token: Token,
        /// For how many ticks.
        expire: u8,
        /// How many numbers are wanted.
        block: u16,
        /// Whether the token is to wait in the list if the lock is taken.
        wait: bool,
    },
    /// Give the lock on, or else leave the list.
    Release {
        /// The token that is over.
        token: Token,
        /// Leave the lock free for a moment instead of giving it on.
        yields: bool,
    },
    /// Let others have the lock first, and take it again.
    Pass {
        /// The token that is over.
        token: Token,
        /// The one that is asked under.
        new: Token,
        /// For how many ticks.
        expire: u8,
        /// How many numbers are wanted.
        block: u16,
        /// Whether the new token is to wait in the list if the lock is taken.
        wait: bool,
        /// Leave the lock free for a moment instead of giving it on or taking it again.
        yields: bool,
    },
    /// Let the lease last longer.
    Extend {
        /// The token that is held.
        token: Token,
        /// For how many ticks.
        expire: u8,
    },
    /// The same script as [`Request::Release`], for a token that is not known to be held.
    Forget {
        /// The token that is over.
        token: Token,
    },
}

impl Request {
    /// The token that it takes back, so that it has to be carried out whatever happens.
    #[must_use]
    pub fn takes_back(self) -> Option<Token> {
        match self {
            Self::Release { token, .. } | Self::Forget { token } => Some(token),
            Self::Acquire { .. } | Self::Pass { .. } | Self::Extend { .. } => None,
        }
    }

    /// The token that this request may bring into the record or the list.
    pub(crate) fn asks_under(self) -> Option<Token> {
        match self {
            Self::Acquire { token, .. } | Self::Pass { new: token, .. } => Some(token),
            Self::Release { .. } | Self::Extend { .. } | Self::Forget { .. } => None,
        }
    }
}

/// Numbers that were reserved, of which `low` is the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block {
    /// The lowest.
    pub low: u16,
    /// The highest.
    pub high: u16,
}

impl Block {
    /// How many numbers are left.
    #[must_use]
    pub fn left(self) -> u16 {
        (self.high + 1).saturating_sub(self.low)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Reply {
    /// The lock is the asker's. `epoch` is not sent: it tells the properties what may be expected.
    Got { block: Block, epoch: u8 },
    /// It is taken, for this time.
    Busy { ttl: u8 },
    /// It was left free.
    Free,
    /// The lease was extended.
    Kept,
    /// The record is not the asker's.
    Lost,
    /// The record was the asker's, and is so no longer.
    Done,
}

/// What the server sends to an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Push {
    /// The token's manager may raise the claim.
    Grant(Token),
    /// Another manager waits for the lock that is held under the token.
    Demand(Token),
    /// The holder yields: the lock is free for a moment, and then it is the token's turn.
    Yielded(Token),
}

impl Push {
    /// The token, which names the inbox too.
    #[must_use]
    pub fn token(self) -> Token {
        match self {
            Self::Grant(token) | Self::Demand(token) | Self::Yielded(token) => token,
        }
    }
}
