//! The scripts: what the server does with a request, in one step.
//!
//! Each is a function of the server's records, as its Lua will be. What it publishes is returned,
//! as is the reply.

use crate::{
    config::{Broken, Config},
    message::{Block, Push, Reply, Request, Token},
    state::{Claim, Ghost, Inbox, Record, Server},
};

/// A request being carried out.
pub(crate) struct Execution<'a> {
    pub(crate) config: &'a Config,
    pub(crate) server: &'a mut Server,
    pub(crate) ghost: &'a mut Ghost,
    /// The subscriptions, by manager.
    pub(crate) inboxes: &'a [Inbox],
    pub(crate) published: Vec<Push>,
}

impl Execution<'_> {
    pub(crate) fn run(&mut self, request: Request) -> Reply {
        match request {
            Request::Acquire { token, expire, block, wait } => {
                self.acquire(token, expire, block, wait)
            }
            Request::Pass { token, new, wait, yields: true, .. } if self.is_held_by(token) => {
                self.leave_it_free();
                if wait {
                    self.wait(new);
                }
                Reply::Free
            }
            Request::Pass { token, new, expire, block, wait, .. } => {
                self.pass(token, new, expire, block, wait)
            }
            Request::Extend { token, expire } => self.extend(token, expire),
            Request::Release { token, yields } => self.release(token, yields),
            Request::Forget { token } => self.release(token, false),
        }
    }

    fn acquire(&mut self, token: Token, expire: u8, block: u16, wait: bool) -> Reply {
        match self.server.lock {
            None => self.take(token, expire, block),
            Some(record) if record.token == token => {
                self.raise(expire);
                self.got(token, block)
            }
            Some(record) => {
                // A foreign holder hands nothing over.
                if wait && record.token != Token::FOREIGN {
                    self.wait(token);
                    self.publish(Push::Demand(record.token));
                }
                Reply::Busy { ttl: record.ttl }
            }
        }
    }

    fn release(&mut self, token: Token, yields: bool) -> Reply {
        if self.is_held_by(token) {
            self.give_on(yields);
            return Reply::Done;
        }
        if self.config.breaks(Broken::DeleteWithoutCompare) {
            self.server.lock = None;
        }
        self.leave(token);
        // It may have been told of a yield, with its own turn after that.
        if self.server.lock.is_none() && !self.config.breaks(Broken::ForgetLeavesFree) {
            self.give_on(yields);
        }
        Reply::Lost
    }

    fn give_on(&mut self, yields: bool) {
        if yields {
            self.leave_it_free();
        } else {
            self.grant_next();
        }
    }

    fn pass(&mut self, token: Token, new: Token, expire: u8, block: u16, wait: bool) -> Reply {
        if !self.is_held_by(token) {
            self.leave(token);
            return self.acquire(new, expire, block, wait);
        }
        if self.server.waiting.is_empty() {
            return self.take(new, expire, block);
        }
        self.grant_next();
        if wait {
            self.wait(new);
        }
        match self.server.lock {
            Some(record) => Reply::Busy { ttl: record.ttl },
            None => Reply::Free,
        }
    }

    fn extend(&mut self, token: Token, expire: u8) -> Reply {
        if !self.is_held_by(token) {
            return Reply::Lost;
        }
        self.raise(expire);
        Reply::Kept
    }

    fn is_held_by(&self, token: Token) -> bool {
        self.server.lock.is_some_and(|record| record.token == token)
    }

    fn take(&mut self, token: Token, ttl: u8, block: u16) -> Reply {
        self.server.lock = Some(Record { token, ttl, claim: Claim::Asked });
        self.got(token, block)
    }

    /// Never lowers: the sender may count on a longer lease that it asked for before.
    fn raise(&mut self, expire: u8) {
        let lowers = self.config.breaks(Broken::LoweredLease);
        if let Some(record) = &mut self.server.lock {
            record.ttl = if lowers { expire } else { record.ttl.max(expire) };
            record.claim = Claim::Asked;
        }
    }

    fn got(&mut self, token: Token, block: u16) -> Reply {
        if !self.config.breaks(Broken::GrantStaysInList) {
            self.leave(token);
        }
        Reply::Got { block: self.reserve(block), epoch: self.server.epoch }
    }

    /// Numbers are reserved backwards from the server's time, some of which has gone by since the
    /// last ones were.
    fn reserve(&mut self, block: u16) -> Block {
        let server = &mut *self.server;
        server.time += self.config.pace;
        let next = server.fence.map_or(0, |last| last + 1);
        let (low, high) = if self.config.breaks(Broken::ForwardBlocks) {
            let low = next.max(server.time);
            (low, low + block - 1)
        } else {
            let high = next.max(server.time);
            let low = match server.fence {
                None if !self.config.breaks(Broken::BackwardBlockWithoutFence) => high,
                _ => next.max((high + 1).saturating_sub(block)),
            };
            (low, high)
        };
        server.fence = Some(high);
        self.ghost.reserved_again |= low <= self.ghost.top;
        self.ghost.ahead |= high > server.time;
        self.ghost.top = self.ghost.top.max(high);
        Block { low, high }
    }

    /// A token that waits already keeps its place.
    fn wait(&mut self, token: Token) {
        if !self.server.waiting.contains(&token) {
            self.server.waiting.push(token);
        }
        self.server.waiting_ttl = self.server.waiting_ttl.max(self.config.times.wait);
    }

    fn leave(&mut self, token: Token) {
        self.server.waiting.retain(|&waiting| waiting != token);
        if self.server.waiting.is_empty() {
            self.server.waiting_ttl = 0;
        }
    }

    /// Grants the lock to the next member that has a receiver. Without the right to push no member is
    /// known to be dead, so a list would stay.
    fn grant_next(&mut self) {
        self.server.lock = None;
        if !self.config.push {
            return;
        }
        while let Some(&token) = self.server.waiting.first() {
            if !self.config.breaks(Broken::GrantStaysInList) {
                self.leave(token);
            }
            if let Some(claim) = self.publish(Push::Grant(token)) {
                let ttl = self.config.times.claim.min(self.config.times.expire);
                self.server.lock = Some(Record { token, ttl, claim });
                return;
            }
            self.leave(token);
        }
    }

    /// Leaves the lock free for waiters on no list. The first of the list is told, and keeps its place.
    fn leave_it_free(&mut self) {
        self.server.lock = None;
        if !self.config.push || self.config.breaks(Broken::NoneToldOfYield) {
            return;
        }
        while let Some(&token) = self.server.waiting.first() {
            if self.publish(Push::Yielded(token)).is_some() {
                return;
            }
            self.leave(token);
        }
    }

    /// Tells whether there was a receiver, and if so, whether it is a real one.
    fn publish(&mut self, push: Push) -> Option<Claim> {
        if !self.config.push {
            return None;
        }
        match self.inboxes[usize::from(push.token().manager)] {
            Inbox::Gone => None,
            Inbox::Stale => Some(Claim::Excused),
            Inbox::Live => {
                self.published.push(push);
                Some(Claim::Granted)
            }
        }
    }
}
