//! A manager's part for one key: what it does when something happens to it.
//!
//! Each function changes the manager and puts requests on its connection, nothing else.

use crate::{
    config::{Broken, Config, Times},
    message::{Block, Push, Reply, Request, Token},
    state::{Flight, Health, Inbox, Lease, Manager, Phase},
};

/// A critical section that began, and the number that it was given.
#[derive(Clone, Copy)]
pub(crate) struct Section {
    /// None where a section begins before the server was asked, which is a broken rule.
    pub(crate) number: Option<u16>,
    pub(crate) epoch: u8,
}

/// A manager at work.
pub(crate) struct Desk<'a> {
    pub(crate) config: &'a Config,
    pub(crate) id: u8,
    pub(crate) manager: &'a mut Manager,
}

impl Desk<'_> {
    pub(crate) fn arrive(&mut self) {
        self.manager.to_come -= 1;
        self.manager.queue += 1;
        match self.manager.phase {
            Phase::Idle => self.ask_under_a_new_token(),
            // The release may be carried out before the pass or after it: either will do.
            // It was left to others for a moment.
            Phase::Releasing { yields: true, .. } | Phase::Yielded { timer: 1.. } => {
                let token = self.new_token();
                self.register(token, 0);
            }
            Phase::Releasing { token, .. } => self.pass(token, false),
            Phase::Yielded { .. } => self.ask_under_a_new_token(),
            _ => {}
        }
    }

    /// A waiter gives up. If it led, the next one goes on in its place, under the same token. If it
    /// was the last one, a request that is out is answered first: only the reply tells what is to be
    /// undone.
    pub(crate) fn cancel(&mut self) {
        self.manager.queue -= 1;
        let connected = self.manager.connected;
        match self.manager.phase {
            _ if self.manager.queue > 0 => {}
            Phase::Registered { token, .. } => self.forget(token),
            Phase::Asking { token, .. } | Phase::Passing { old: token, .. } if !connected => {
                self.forget(token);
            }
            _ => {}
        }
    }

    /// The section ends, and the next local waiter runs under the same lease.
    pub(crate) fn hand_over(&mut self) -> Option<Section> {
        let Phase::Holding(mut lease) = self.manager.phase else { return None };
        // A section that was overtaken is over, the next one was not.
        lease.overtaken = false;
        self.begin(lease)
    }

    /// The section ends, and so does the lease.
    pub(crate) fn end_section(&mut self) {
        let Phase::Holding(Lease { token, .. }) = self.manager.phase else { return };
        self.give_on(token, false);
    }

    /// The section ends, and others than those in the list get a chance before the next one.
    pub(crate) fn yield_lock(&mut self) {
        let Phase::Holding(Lease { token, .. }) = self.manager.phase else { return };
        self.give_on(token, true);
    }

    fn give_on(&mut self, token: Token, yields: bool) {
        if self.manager.queue == 0 {
            self.release(token, yields);
        } else {
            self.pass(token, yields);
        }
    }

    pub(crate) fn renew(&mut self) {
        if let Phase::Holding(Lease { token, .. }) = self.manager.phase {
            self.send(Request::Extend { token, expire: self.expire() });
        }
    }

    /// The lease is over, by the clock or by an answer.
    pub(crate) fn lose(&mut self) {
        let Phase::Holding(Lease { token, .. }) = self.manager.phase else { return };
        if self.manager.queue == 0 {
            self.send(Request::Forget { token });
            self.manager.phase = Phase::Idle;
        } else {
            self.pass(token, false);
        }
    }

    pub(crate) fn timer(&mut self) {
        match self.manager.phase {
            Phase::Registered { token, .. } => self.ask(token),
            Phase::Yielded { .. } => self.manager.phase = Phase::Idle,
            _ => {}
        }
    }

    pub(crate) fn on_push(&mut self, push: Push) -> Option<Section> {
        let token = push.token();
        let wanted = match self.manager.phase {
            Phase::Idle | Phase::Yielded { .. } => false,
            Phase::Asking { token: ours, .. } | Phase::Registered { token: ours, .. } => {
                ours == token
            }
            Phase::Holding(Lease { token: ours, .. }) | Phase::Releasing { token: ours, .. } => {
                ours == token
            }
            // The old token is about to be over: what is granted to it goes back.
            Phase::Passing { old, new, .. } => {
                new == token || (old == token && matches!(push, Push::Demand(_)))
            }
        };
        if !wanted {
            if !self.config.breaks(Broken::NoForgetOfGrant) {
                self.send(Request::Forget { token });
            }
            return None;
        }
        if matches!(push, Push::Demand(_)) {
            // Bounds the cohort. Here a cohort may end after any section anyway.
            return None;
        }
        match &mut self.manager.phase {
            Phase::Registered { timer, .. } if matches!(push, Push::Yielded(_)) => {
                *timer = timer.map(|left| left.min(1));
                None
            }
            Phase::Registered { .. } if self.config.breaks(Broken::ValidityFromPush) => {
                self.request(token);
                let validity = self.config.times.claim;
                self.begin(Lease { token, validity, block: None, epoch: 0, overtaken: false })
            }
            Phase::Registered { .. } => {
                self.ask(token);
                None
            }
            // The reply that is out may be older than the grant.
            Phase::Asking { granted, .. } => {
                *granted = !self.config.breaks(Broken::GrantIgnoredWhileAsking);
                None
            }
            Phase::Passing { new, granted, .. } if *new == token => {
                *granted = !self.config.breaks(Broken::GrantIgnoredWhileAsking);
                None
            }
            _ => None,
        }
    }

    pub(crate) fn on_reply(&mut self, flight: Flight) -> Option<Section> {
        let (token, expire) = match flight.request {
            Request::Acquire { token, expire, .. } | Request::Extend { token, expire } => {
                (token, expire)
            }
            Request::Pass { new, expire, .. } => (new, expire),
            Request::Release { token, .. } => {
                match self.manager.phase {
                    Phase::Releasing { token: ours, yields } if ours == token => {
                        self.manager.phase =
                            if yields { Phase::Yielded { timer: 1 } } else { Phase::Idle };
                    }
                    _ => {}
                }
                return None;
            }
            Request::Forget { .. } => return None,
        };
        let validity = if self.config.breaks(Broken::ValidityFromReply) {
            self.config.validity(expire)
        } else {
            flight.validity
        };
        let reply = flight.reply?;
        match self.manager.phase {
            Phase::Holding(lease) if lease.token == token => {
                self.on_reply_while_holding(lease, reply, validity);
                None
            }
            Phase::Asking { token: ours, granted } | Phase::Passing { new: ours, granted, .. }
                if ours == token =>
            {
                self.on_reply_while_asking(token, granted, reply, validity)
            }
            _ => None,
        }
    }

    /// Under the token that is held nothing but extensions is out. Anything else is answered only
    /// where a rule is broken.
    fn on_reply_while_holding(&mut self, mut lease: Lease, reply: Reply, validity: u8) {
        match reply {
            Reply::Busy { .. } | Reply::Free | Reply::Lost => return self.lose(),
            // What has run out is over.
            _ if lease.validity == 0 && !self.config.breaks(Broken::Revival) => return,
            Reply::Got { block, epoch } => {
                lease.block = Some(block);
                lease.epoch = epoch;
            }
            Reply::Kept | Reply::Done => {}
        }
        lease.validity = lease.validity.max(validity);
        self.manager.phase = Phase::Holding(lease);
    }

    fn on_reply_while_asking(
        &mut self,
        token: Token,
        granted: bool,
        reply: Reply,
        validity: u8,
    ) -> Option<Section> {
        match reply {
            Reply::Got { .. } if self.manager.queue == 0 => self.release_for_nobody(token),
            Reply::Got { .. } if validity == 0 => self.ask(token),
            Reply::Got { block, epoch } => {
                let block = Some(block);
                return self.begin(Lease { token, validity, block, epoch, overtaken: false });
            }
            Reply::Busy { .. } | Reply::Free if self.manager.queue == 0 => self.forget(token),
            Reply::Busy { .. } | Reply::Free if granted => self.ask(token),
            Reply::Busy { ttl } => self.register(token, ttl),
            Reply::Free => self.register(token, 0),
            Reply::Kept | Reply::Lost | Reply::Done => {}
        }
        None
    }

    /// The connection is over: its requests get no answer any more. One may still reach the
    /// server, at any time, so that its token is of no use any more.
    pub(crate) fn disconnect(&mut self) {
        self.manager.connected = false;
        self.manager.stalled = false;
        for flight in std::mem::take(&mut self.manager.flights) {
            if flight.request.takes_back().is_some() {
                self.send(flight.request);
            }
        }
        match self.manager.phase {
            Phase::Asking { .. } | Phase::Passing { .. }
                if self.config.breaks(Broken::AskAgainAfterCut) => {}
            Phase::Asking { token, .. } => self.give_up(&[token]),
            Phase::Passing { old, new: _, .. }
                if self.config.breaks(Broken::ForgetOldOnlyInPass) =>
            {
                self.give_up(&[old]);
            }
            Phase::Passing { old, new, .. } => self.give_up(&[old, new]),
            Phase::Releasing { .. } => self.manager.phase = Phase::Idle,
            Phase::Idle | Phase::Registered { .. } | Phase::Holding(_) | Phase::Yielded { .. } => {}
        }
    }

    /// There is a new one, on which the inbox is subscribed already.
    pub(crate) fn reconnect(&mut self) {
        self.manager.connected = true;
        self.manager.inbox = Inbox::Live;
        for request in std::mem::take(&mut self.manager.unsent) {
            if !self.config.breaks(Broken::UnansweredForgetsDropped) {
                self.send(request);
            }
        }
        if self.config.breaks(Broken::NoAskOnReconnect) {
            return;
        }
        match self.manager.phase {
            Phase::Idle | Phase::Releasing { .. } | Phase::Yielded { .. } => {}
            Phase::Asking { token, .. } | Phase::Registered { token, .. } => self.ask(token),
            Phase::Holding(_) => self.renew(),
            Phase::Passing { old, new, .. } => self.request_pass(old, new, false),
        }
    }

    /// What a late request has brought into the record or the list goes.
    pub(crate) fn forget_strays(&mut self) {
        for token in std::mem::take(&mut self.manager.strays) {
            self.send(Request::Forget { token });
        }
    }

    pub(crate) fn crash(&mut self) {
        let manager = &mut *self.manager;
        manager.health = Health::Crashed;
        manager.connected = false;
        manager.stalled = false;
        manager.phase = Phase::Idle;
        manager.queue = 0;
        manager.to_come = 0;
        manager.flights.clear();
        manager.unsent.clear();
        manager.strays.clear();
    }

    /// The token is over, and with it whatever was asked under it.
    fn forget(&mut self, token: Token) {
        if !self.config.breaks(Broken::NoForgetOfWait) {
            self.send(Request::Forget { token });
        }
        self.manager.phase = Phase::Idle;
    }

    fn give_up(&mut self, tokens: &[Token]) {
        for &token in tokens {
            self.send(Request::Forget { token });
        }
        self.manager.phase = Phase::Idle;
        if self.manager.queue > 0 {
            self.ask_under_a_new_token();
        }
    }

    fn release(&mut self, token: Token, yields: bool) {
        self.send(Request::Release { token, yields });
        let out = self.manager.connected;
        self.manager.phase = if out { Phase::Releasing { token, yields } } else { Phase::Idle };
    }

    fn release_for_nobody(&mut self, token: Token) {
        if self.config.breaks(Broken::NoReleaseWithoutWaiters) {
            self.manager.phase = Phase::Idle;
        } else {
            self.release(token, false);
        }
    }

    /// The lock is given on, and asked for again.
    fn pass(&mut self, old: Token, yields: bool) {
        let reuse = self.config.breaks(Broken::TokenReusedInPass);
        let new = if reuse { old } else { self.new_token() };
        self.request_pass(old, new, yields);
    }

    fn begin(&mut self, mut lease: Lease) -> Option<Section> {
        self.manager.queue = self.manager.queue.checked_sub(1)?;
        let number = lease.block.map(|Block { low, .. }| low);
        if let Some(block) = &mut lease.block {
            block.low += 1;
        }
        self.manager.phase = Phase::Holding(lease);
        Some(Section { number, epoch: lease.epoch })
    }

    fn register(&mut self, token: Token, ttl: u8) {
        let cap =
            if self.config.breaks(Broken::NoTimerCap) { u8::MAX } else { self.config.times.cap };
        let timer = (!self.config.breaks(Broken::NoTimer)).then(|| ttl.clamp(1, cap));
        self.manager.phase = Phase::Registered { token, timer };
    }

    fn ask_under_a_new_token(&mut self) {
        let token = self.new_token();
        self.ask(token);
    }

    fn ask(&mut self, token: Token) {
        self.manager.phase = Phase::Asking { token, granted: false };
        self.request(token);
    }

    fn request(&mut self, token: Token) {
        let (expire, block, wait) = (self.expire(), self.block(), self.waits_for_pushes());
        self.send(Request::Acquire { token, expire, block, wait });
    }

    fn request_pass(&mut self, old: Token, new: Token, yields: bool) {
        self.manager.phase = Phase::Passing { old, new, granted: false };
        let (expire, block, wait) = (self.expire(), self.block(), self.waits_for_pushes());
        self.send(Request::Pass { token: old, new, expire, block, wait, yields });
    }

    /// The leader asks for the lease that it wants itself. Waiters are served in the order in which
    /// they came, so which one leads follows from how many have not come yet.
    fn expire(&self) -> u8 {
        let Times { expire, .. } = self.config.times;
        let behind = self.manager.to_come + self.manager.queue;
        let leader = self.config.waiters.saturating_sub(behind);
        if self.config.mixed && leader % 2 == 1 { expire - 2 } else { expire }
    }

    /// A number for each waiter.
    fn block(&self) -> u16 {
        u16::from(self.manager.queue).clamp(1, self.config.block)
    }

    /// There is no point in a place in the list for a token that cannot be told of its turn.
    fn waits_for_pushes(&self) -> bool {
        self.config.push && self.manager.inbox == Inbox::Live
    }

    fn new_token(&mut self) -> Token {
        self.manager.serial += 1;
        Token { manager: self.id, serial: self.manager.serial }
    }

    /// Without a connection, what takes back is kept, once for each token; the rest follows from the
    /// phase when there is one again.
    fn send(&mut self, request: Request) {
        if self.manager.connected {
            let validity = match request {
                Request::Release { .. } | Request::Forget { .. } => 0,
                Request::Acquire { expire, .. }
                | Request::Pass { expire, .. }
                | Request::Extend { expire, .. } => self.config.validity(expire),
            };
            self.manager.flights.push(Flight { request, validity, reply: None });
        } else if let Some(token) = request.takes_back() {
            let kept = |request: &Request| request.takes_back() == Some(token);
            if !self.manager.unsent.iter().any(kept) {
                self.manager.unsent.push(request);
            }
        }
    }
}
