//! A manager's part for one key: what it does when something happens to it.
//!
//! Each function changes the manager and puts requests on its connection, nothing else.

use crate::{
    config::{Broken, Config},
    state::{Block, Flight, Health, Inbox, Lease, Manager, Phase, Push, Reply, Request, Token},
};

/// A critical section that began, and the number that it was given.
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
        if self.manager.phase == Phase::Idle {
            self.ask_under_a_new_token();
        }
    }

    /// A waiter gives up. If it led, the next one goes on in its place, under the same token.
    pub(crate) fn cancel(&mut self) {
        self.manager.queue -= 1;
        if self.manager.queue > 0 {
            return;
        }
        match self.manager.phase {
            Phase::Idle | Phase::Holding(_) => return,
            Phase::Asking { token, .. } | Phase::Registered { token, .. } => {
                if !self.config.breaks(Broken::NoForgetOfWait) {
                    self.send(Request::Forget { token });
                }
            }
            Phase::Passing { old, new, .. } => {
                self.send(Request::Forget { token: old });
                if !self.config.breaks(Broken::ForgetOldOnlyInPass) {
                    self.send(Request::Forget { token: new });
                }
            }
        }
        self.manager.phase = Phase::Idle;
    }

    /// The section ends. `local` asks for the next one to run under the same lease.
    pub(crate) fn end_section(&mut self, local: bool) -> Option<Section> {
        let Phase::Holding(lease) = self.manager.phase else { return None };
        if local {
            return self.hand_over(lease);
        }
        let token = lease.token;
        if self.manager.queue == 0 {
            self.send(Request::Release { token });
            self.manager.phase = Phase::Idle;
            return None;
        }
        let reuse = self.config.breaks(Broken::TokenReusedInPass);
        let new = if reuse { token } else { self.new_token() };
        self.request_pass(token, new);
        None
    }

    pub(crate) fn renew(&mut self) {
        if let Phase::Holding(Lease { token, .. }) = self.manager.phase {
            self.send(Request::Extend { token, expire: self.expire() });
        }
    }

    /// The lease is over, by the clock or by an answer.
    pub(crate) fn lose(&mut self) {
        let Phase::Holding(Lease { token, .. }) = self.manager.phase else { return };
        self.send(Request::Forget { token });
        self.manager.phase = Phase::Idle;
        if self.manager.queue > 0 {
            self.ask_under_a_new_token();
        }
    }

    pub(crate) fn timer(&mut self) {
        if let Phase::Registered { token, .. } = self.manager.phase {
            self.ask(token);
        }
    }

    pub(crate) fn on_push(&mut self, push: Push) -> Option<Section> {
        let token = push.token();
        let wanted = match self.manager.phase {
            Phase::Idle => false,
            Phase::Asking { token: ours, .. } | Phase::Registered { token: ours, .. } => {
                ours == token
            }
            Phase::Holding(lease) => lease.token == token,
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
            Request::Release { .. } | Request::Forget { .. } => return None,
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
                self.on_reply_while_waiting(token, granted, reply, validity)
            }
            Phase::Registered { token: ours, .. } if ours == token => {
                self.on_reply_while_waiting(token, false, reply, validity)
            }
            _ => None,
        }
    }

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

    fn on_reply_while_waiting(
        &mut self,
        token: Token,
        granted: bool,
        reply: Reply,
        validity: u8,
    ) -> Option<Section> {
        match reply {
            Reply::Got { .. } if validity == 0 => self.ask(token),
            Reply::Got { block, epoch } => {
                let block = Some(block);
                return self.begin(Lease { token, validity, block, epoch, overtaken: false });
            }
            Reply::Busy { .. } | Reply::Free if granted => self.ask(token),
            Reply::Busy { ttl } => self.register(token, ttl),
            Reply::Free => self.register(token, 0),
            Reply::Kept | Reply::Lost | Reply::Done => {}
        }
        None
    }

    /// The connection is over: what is on it is answered no more.
    pub(crate) fn disconnect(&mut self) {
        let manager = &mut *self.manager;
        manager.connected = false;
        manager.stalled = false;
        for flight in manager.flights.drain(..) {
            if matches!(flight.request, Request::Release { .. } | Request::Forget { .. }) {
                manager.unsent.push(flight.request);
            }
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
            Phase::Idle => {}
            Phase::Asking { token, .. } | Phase::Registered { token, .. } => self.ask(token),
            Phase::Holding(_) => self.renew(),
            Phase::Passing { old, new, .. } => self.request_pass(old, new),
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
    }

    /// A request is overdue: it goes out once more. Who leads now may ask for another lease than
    /// who led when it was sent.
    pub(crate) fn send_again(&mut self) {
        match overdue(self.config, self.manager) {
            Some(Request::Acquire { token, .. }) => self.request(token),
            Some(request) => self.send(request),
            None => {}
        }
    }

    fn hand_over(&mut self, mut lease: Lease) -> Option<Section> {
        // A section that was overtaken is over, the next one was not.
        lease.overtaken = false;
        self.begin(lease)
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
        self.send(Request::Acquire { token, expire: self.expire(), block: self.block() });
    }

    fn request_pass(&mut self, old: Token, new: Token) {
        self.manager.phase = Phase::Passing { old, new, granted: false };
        let (expire, block) = (self.expire(), self.block());
        self.send(Request::Pass { token: old, new, expire, block });
    }

    /// The leader asks for the lease that it wants itself.
    fn expire(&self) -> u8 {
        let expire = self.config.times.expire;
        if self.config.mixed && self.manager.queue == 1 { expire - 2 } else { expire }
    }

    /// More than one number is reserved if there is more than one waiter.
    fn block(&self) -> u16 {
        if self.manager.queue > 1 { self.config.block } else { 1 }
    }

    fn new_token(&mut self) -> Token {
        self.manager.serial += 1;
        Token { manager: self.id, serial: self.manager.serial }
    }

    /// Without a connection, releases and forgets are kept; the rest follows from the phase when
    /// there is one again.
    fn send(&mut self, request: Request) {
        if self.manager.connected {
            let validity = match request {
                Request::Release { .. } | Request::Forget { .. } => 0,
                Request::Acquire { expire, .. }
                | Request::Pass { expire, .. }
                | Request::Extend { expire, .. } => self.config.validity(expire),
            };
            self.manager.flights.push(Flight { request, validity, reply: None });
        } else if matches!(request, Request::Release { .. } | Request::Forget { .. }) {
            self.manager.unsent.push(request);
        }
    }
}

/// The first unanswered request that is still of use.
pub(crate) fn overdue(config: &Config, manager: &Manager) -> Option<Request> {
    let waits = |token| match manager.phase {
        Phase::Asking { token: ours, .. } | Phase::Registered { token: ours, .. } => ours == token,
        Phase::Holding(lease) => lease.token == token,
        Phase::Idle | Phase::Passing { .. } => false,
    };
    let passes = |token| matches!(manager.phase, Phase::Passing { new, .. } if new == token);
    manager.flights.iter().map(|flight| flight.request).find(|request| match *request {
        Request::Release { .. } | Request::Forget { .. } => true,
        _ if config.breaks(Broken::AskAgainAfterRelease) => true,
        Request::Pass { new, .. } => passes(new),
        Request::Acquire { token, .. } | Request::Extend { token, .. } => waits(token),
    })
}
