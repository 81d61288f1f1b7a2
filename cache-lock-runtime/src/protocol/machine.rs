//! The decisions of the protocol: how each event changes the state of a key, and what follows.

use std::{mem, sync::Arc};

use super::{
    cohort::{Cohort, Succession},
    effects::{Effects, Env},
    key_queue::KeyQueue,
    messages::{AcquireError, AcquireRequest, AcquireResponse, Fate, ReleaseRequest, RequestKind},
    phase::{HeldGrant, Hold, Pending, Phase, Registered, Releasing},
    waiter::{Refusal, Waiter},
};
use crate::{
    clock::Instant,
    error::{BackendError, BackendErrorKind},
    lease::{Lease, valid_until},
    options::MIN_EXPIRE,
    owner::OwnerToken,
};

mod delayed;
mod pushes;
#[cfg(test)]
mod tests;

/// The most numbers that are reserved at a time.
const LARGEST_BLOCK: usize = 1000;

/// One key during one event.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    pub(crate) queue: &'a mut KeyQueue,
    pub(crate) env: &'a Env<'a>,
    pub(crate) effects: &'a mut Effects,
}

impl Machine<'_> {
    /// A waiter comes.
    pub(crate) fn join(&mut self, waiter: &Arc<Waiter>) {
        let now = self.env.now;
        if self.queue.waiters.is_empty() && self.queue.phase.pending().is_some() {
            // It answered waiters that have gone.
            self.queue.refusal = None;
        }
        self.queue.waiters.push_back(waiter);
        match &mut self.queue.phase {
            Phase::Idle => self.ask_directly(None, waiter),
            Phase::Releasing(Releasing { token, yields }) => {
                let due = self.queue.backoff.after_yield(now);
                if *yields && due < waiter.patience {
                    self.wait_out_yield(waiter, due);
                } else {
                    // The release and the pass may be carried out in either order: the lock goes to the
                    // waiting list, or to this waiter.
                    let token = token.clone();
                    self.ask_directly(Some(token), waiter);
                }
            }
            Phase::Yielded(until) if now < *until && *until < waiter.patience => {
                let due = *until;
                self.wait_out_yield(waiter, due);
            }
            Phase::Yielded(_) => self.ask_directly(None, waiter),
            Phase::Holding(_) => self.go_on_after_loss(),
            Phase::Asking(pending) | Phase::Passing(pending) => {
                self.effects.take_over = pending.take_over(self.env);
            }
            Phase::Registered(_) => {}
        }
        if waiter.patience <= now && self.queue.phase.pending().is_none() {
            self.refuse_late(None);
        }
    }

    /// The manager yields the lock, so a caller that comes now gives other managers time. Otherwise a caller
    /// that comes again and again would take each gap for itself.
    fn wait_out_yield(&mut self, waiter: &Waiter, due: Instant) {
        let (token, expire) = (self.env.tokens.next(), waiter.settings.expire);
        self.queue.phase =
            Phase::Registered(Registered { token, kind: RequestKind::New, expire, due });
    }

    /// A waiter's future is gone.
    pub(crate) fn leave(&mut self, waiter: &Arc<Waiter>) {
        match waiter.leave() {
            Some(lease) => {
                let in_time = lease.release(self.env.now);
                self.end(&lease, in_time);
            }
            None => self.remove(waiter),
        }
    }

    /// The reason for a waiter whose time is over; `None` if it has to wait for the first answer.
    pub(crate) fn give_up(&mut self, waiter: &Arc<Waiter>) -> Option<Refusal> {
        let now = self.env.now;
        let (overdue, delayed) = match self.queue.phase.pending() {
            Some(Pending { sent: Some(sent), expire, .. }) => {
                (*sent + self.env.attempt(*expire), false)
            }
            Some(_) => (Instant::FAR, true),
            None => (Instant::FAR, false),
        };
        let refusal = match &self.queue.refusal {
            Some(refusal) if now < overdue => refusal.clone(),
            _ if delayed && now >= waiter.end => Refusal::Backend(BackendError::overloaded()),
            _ if now >= overdue || now >= waiter.end => {
                let message = "the server did not answer";
                Refusal::Backend(BackendError::new(BackendErrorKind::Timeout, message))
            }
            _ => return None,
        };
        self.remove(waiter);
        Some(refusal)
    }

    fn remove(&mut self, waiter: &Arc<Waiter>) {
        self.queue.waiters.remove(waiter);
        match &mut self.queue.phase {
            Phase::Asking(pending) | Phase::Passing(pending)
                if pending.asker.as_ref().is_some_and(|asker| Arc::ptr_eq(asker, waiter)) =>
            {
                self.let_go();
            }
            Phase::Registered(_) if self.queue.waiters.is_empty() => self.stop_waiting(),
            _ => {}
        }
    }

    /// A request was answered.
    pub(crate) fn answered(
        &mut self,
        token: &OwnerToken,
        answer: Result<AcquireResponse, AcquireError>,
    ) {
        let pending = match mem::replace(&mut self.queue.phase, Phase::Idle) {
            Phase::Asking(pending) | Phase::Passing(pending) if pending.token == *token => pending,
            other => {
                self.queue.phase = other;
                return;
            }
        };
        let now = self.env.now;
        let busy = |no_expiry| Some(Refusal::Busy { no_expiry });
        match answer {
            Ok(AcquireResponse::Got { numbers, sent_at, others }) => {
                let found = pending.would_find_it_free();
                let cohort = self.cohort(sent_at, others || pending.others, found);
                let Pending { token, expire, .. } = pending;
                let valid_until = valid_until(sent_at, expire);
                self.got(HeldGrant { token, expire, valid_until, numbers, cohort });
            }
            Ok(AcquireResponse::Busy { remaining, ours, listed }) => {
                self.refuse_late(busy(remaining.is_none()));
                let due = if listed && ours {
                    self.queue.backoff.listed(now, remaining)
                } else {
                    self.queue.backoff.polling(now, remaining)
                };
                self.register(pending, listed, due);
            }
            Ok(AcquireResponse::Free { listed }) => {
                self.refuse_late(busy(false));
                let due = self.queue.backoff.after_yield(now);
                self.register(pending, listed, due);
            }
            Err(failed) => self.failed(pending, failed),
        }
    }

    fn got(&mut self, grant: HeldGrant) {
        let now = self.env.now;
        self.queue.backoff.reset();
        // The old token of a pass has its answer, too.
        self.queue.lasts = now + grant.expire;
        if now >= grant.valid_until {
            let message = "the server's answer took longer than the lease that it granted";
            let error = BackendError::new(BackendErrorKind::Timeout, message);
            self.refuse_late(Some(Refusal::Backend(error)));
            if self.queue.waiters.is_empty() {
                return self.release(grant, false);
            }
            return self.ask(grant.token, RequestKind::Again);
        }
        match self.queue.waiters.front() {
            Some(front) if front.settings.expire == grant.expire => {
                let acquired = grant.cohort.asked();
                self.hand_over(grant, acquired);
            }
            // Another waiter leads than when the lock was asked for.
            Some(_) => self.next(grant),
            None => self.release(grant, false),
        }
        self.refuse_late(Some(Refusal::Busy { no_expiry: false }));
    }

    fn failed(&mut self, pending: Pending, failed: AcquireError) {
        let AcquireError { error, fate } = failed;
        // The connection may have been broken for long while the server is there. So no waiter is told
        // before the server was asked over another connection.
        let old = match fate {
            Fate::Broken => Some(None),
            // It may have been granted on the connection that is not read.
            Fate::Abandoned => Some(Some(pending.token.clone())),
            Fate::Refused | Fate::Unanswered => None,
        };
        if let Some(old) = old
            && !pending.repeated
            && !self.queue.waiters.is_empty()
        {
            self.ask_anew(old);
            if let Some(pending) = self.queue.phase.pending_mut() {
                pending.repeated = true;
            }
            return;
        }
        let patient = error.is_transient();
        let refusal = Refusal::Backend(error);
        if !patient {
            self.refuse_all(&refusal);
        }
        self.refuse_late(Some(refusal));
        let due = self.queue.backoff.after_failure(self.env.now);
        let Pending { token, kind, expire, .. } = pending;
        let (token, kind) = match fate {
            Fate::Refused => (token, kind.retried()),
            Fate::Unanswered | Fate::Broken | Fate::Abandoned => {
                (self.env.tokens.next(), RequestKind::New)
            }
        };
        self.queue.phase = Phase::Registered(Registered { token, kind, expire, due });
        if self.queue.waiters.is_empty() {
            self.stop_waiting();
        }
    }

    /// A waiter's future is being polled: it takes what it was handed.
    pub(crate) fn polled(&mut self, waiter: &Arc<Waiter>) {
        if let Phase::Holding(hold) = &mut self.queue.phase {
            hold.handed.take_if(|(handed, _)| Arc::ptr_eq(handed, waiter));
        }
    }

    /// A section ends. `in_time`: its lease had not ended before.
    pub(crate) fn end(&mut self, lease: &Arc<Lease>, in_time: bool) {
        let Hold { mut grant, .. } = match mem::replace(&mut self.queue.phase, Phase::Idle) {
            Phase::Holding(hold) if Arc::ptr_eq(&hold.lease, lease) => hold,
            other => {
                self.queue.phase = other;
                return;
            }
        };
        self.queue.lasts = self.queue.lasts.max(lease.lasts());
        if in_time {
            grant.valid_until = grant.valid_until.max(lease.deadline());
            self.next(grant);
            self.effects.handed_over = matches!(self.queue.phase, Phase::Holding(_));
        } else if self.queue.waiters.is_empty() {
            self.release(grant, false);
        } else {
            self.ask_anew(Some(grant.token));
        }
    }

    /// The lease of a section may have been lost. The waiters do not wait for the end of the section.
    pub(crate) fn go_on_after_loss(&mut self) {
        if let Phase::Holding(hold) = &self.queue.phase
            && !hold.lease.is_valid(self.env.now)
            && !self.queue.waiters.is_empty()
        {
            let token = hold.grant.token.clone();
            self.queue.lasts = self.queue.lasts.max(hold.lease.lasts());
            self.ask_anew(Some(token));
        }
    }

    /// Decides what follows a section while the lease lasts.
    fn next(&mut self, grant: HeldGrant) {
        let now = self.env.now;
        while self.queue.waiters.front().is_some_and(|front| now >= front.end)
            && let Some(late) = self.queue.waiters.pop_front()
        {
            self.effects.wake.extend(late.refuse(Refusal::Busy { no_expiry: false }));
        }
        let Some(front) = self.queue.waiters.front() else {
            let yields = grant.cohort.yields(now);
            return self.release(grant, yields);
        };
        match grant.cohort.succession(now) {
            Succession::HandOver if grant.suits(&front.settings, now) => self.hand_over(grant, now),
            Succession::HandOver | Succession::Pass => self.ask_anew(Some(grant.token)),
            Succession::Yield => self.pass(grant.token, true),
        }
    }

    /// Hands the lease to the first waiter, which counts as its holder from `acquired` on.
    fn hand_over(&mut self, mut grant: HeldGrant, acquired: Instant) {
        let Some(fence) = grant.numbers.take() else {
            return self.ask_anew(Some(grant.token));
        };
        let Some(waiter) = self.queue.waiters.pop_front() else {
            return self.release(grant, false);
        };
        grant.cohort.handed_over();
        let enclosing = waiter.enclosing.clone();
        let lease = grant.lease(self.env, waiter.settings, enclosing, fence, acquired);
        let by = self.env.now + self.env.polled_within(waiter.settings.expire);
        self.effects.wake.extend(waiter.hand(Arc::clone(&lease)));
        self.queue.refusal = Some(Refusal::Busy { no_expiry: false });
        self.queue.phase = Phase::Holding(Hold { grant, lease, handed: Some((waiter, by)) });
    }

    fn release(&mut self, grant: HeldGrant, yields: bool) {
        let HeldGrant { token, expire, .. } = grant;
        let lasts = self.queue.lasts;
        self.queue.phase = Phase::Releasing(Releasing { token: token.clone(), yields });
        self.effects.release = Some(ReleaseRequest { token, expire, lasts, yields });
    }

    /// `found`: the lock was free when it was asked for.
    fn cohort(&mut self, asked: Instant, others: bool, found: bool) -> Cohort {
        let random = self.queue.backoff.random();
        Cohort::new(asked, others, Cohort::draw_yield(asked, self.env.told, found, random))
    }

    /// A release was answered. False if the lock was passed on meanwhile.
    pub(crate) fn released(&mut self, token: &OwnerToken) -> bool {
        match &self.queue.phase {
            Phase::Releasing(releasing) if releasing.token == *token => {
                let yields = releasing.yields;
                let until = self.queue.backoff.after_yield(self.env.now);
                self.queue.phase = if yields { Phase::Yielded(until) } else { Phase::Idle };
                true
            }
            _ => false,
        }
    }

    fn register(&mut self, pending: Pending, listed: bool, due: Instant) {
        let Pending { token, kind, expire, granted, .. } = pending;
        if granted && !self.queue.waiters.is_empty() {
            return self.ask(token, RequestKind::Again);
        }
        // A request that does not ask to wait leaves the token on the list where an earlier one has put it.
        let kind =
            if listed || kind.may_be_listed() { RequestKind::Again } else { RequestKind::New };
        self.queue.phase = Phase::Registered(Registered { token, kind, expire, due });
        if self.queue.waiters.is_empty() {
            self.stop_waiting();
        }
    }

    fn stop_waiting(&mut self) {
        let Phase::Registered(registered) = mem::replace(&mut self.queue.phase, Phase::Idle) else {
            return;
        };
        let Registered { token, kind, expire, .. } = registered;
        let over = match kind {
            RequestKind::New => return,
            RequestKind::Again | RequestKind::Claim => token,
            // The release is still to be sent.
            RequestKind::Pass(old) => old.token,
        };
        let lasts = self.queue.lasts.max(self.env.now + expire);
        self.effects.release = Some(ReleaseRequest::new(over, expire, lasts));
    }

    /// When [`on_timer`](Self::on_timer) has something to do.
    pub(crate) fn due(&self) -> Option<Instant> {
        match &self.queue.phase {
            Phase::Registered(registered) => Some(registered.due),
            Phase::Yielded(until) => Some(*until),
            Phase::Holding(Hold { handed, .. }) => handed.as_ref().map(|(_, by)| *by),
            Phase::Asking(pending) | Phase::Passing(pending) => {
                let asker = pending.asker.as_ref()?;
                Some(match pending.sent {
                    Some(sent) => sent + self.env.polled_within(pending.expire),
                    // The asker is the only waiter, and sets no timer while its request is out.
                    None => asker.end,
                })
            }
            Phase::Idle | Phase::Releasing(_) => None,
        }
    }

    /// The timer of the key goes off.
    pub(crate) fn on_timer(&mut self) {
        let now = self.env.now;
        if self.due().is_none_or(|due| now < due) {
            return;
        }
        match &mut self.queue.phase {
            Phase::Registered(registered) => {
                let (token, kind) = (registered.token.clone(), registered.kind.clone());
                self.ask(token, kind);
            }
            Phase::Holding(Hold { lease, handed, .. }) => {
                if let Some((waiter, _)) = handed.take()
                    && waiter.miss()
                {
                    let lease = Arc::clone(lease);
                    let in_time = lease.release(now);
                    self.end(&lease, in_time);
                }
            }
            Phase::Asking(pending) | Phase::Passing(pending) => {
                if pending.sent.is_some() {
                    self.effects.take_over = pending.take_over(self.env);
                } else {
                    self.refuse_late(Some(Refusal::Backend(BackendError::overloaded())));
                    self.let_go();
                }
            }
            Phase::Yielded(_) => self.queue.phase = Phase::Idle,
            Phase::Idle | Phase::Releasing(_) => {}
        }
    }

    /// The manager ends.
    pub(crate) fn close(&mut self) {
        self.refuse_all(&Refusal::ShutDown);
        match &mut self.queue.phase {
            Phase::Asking(_) | Phase::Passing(_) => self.let_go(),
            Phase::Registered(_) => self.stop_waiting(),
            Phase::Yielded(_) => self.queue.phase = Phase::Idle,
            Phase::Idle | Phase::Holding(_) | Phase::Releasing(_) => {}
        }
    }

    fn refuse_all(&mut self, refusal: &Refusal) {
        while let Some(waiter) = self.queue.waiters.pop_front() {
            self.effects.wake.extend(waiter.refuse(refusal.clone()));
        }
    }

    /// Refuses the waiters whose time is over. `news`: the reason, if it is a new one.
    fn refuse_late(&mut self, news: Option<Refusal>) {
        self.queue.refusal = news.or(self.queue.refusal.take());
        let Some(refusal) = &self.queue.refusal else { return };
        while let Some(late) = self.queue.waiters.pop_late(self.env.now) {
            self.effects.wake.extend(late.refuse(refusal.clone()));
        }
        if self.queue.waiters.is_empty() && matches!(self.queue.phase, Phase::Registered(_)) {
            self.stop_waiting();
        }
    }

    /// Asks through the future of the only waiter: no hop to another thread.
    fn ask_directly(&mut self, old: Option<OwnerToken>, waiter: &Arc<Waiter>) {
        self.queue.refusal = None;
        self.ask_anew(old);
        if let Some(pending) = self.queue.phase.pending_mut() {
            pending.asker = Some(Arc::clone(waiter));
            self.effects.asker = Some(Arc::clone(waiter));
        }
    }

    /// Asks under a new token; in one step with the release of the old one, if there is one.
    fn ask_anew(&mut self, old: Option<OwnerToken>) {
        match old {
            Some(old) => self.pass(old, false),
            None => self.ask(self.env.tokens.next(), RequestKind::New),
        }
    }

    /// `yields`: the lock is left free for a moment.
    fn pass(&mut self, old: OwnerToken, yields: bool) {
        let old =
            ReleaseRequest { yields, ..ReleaseRequest::new(old, MIN_EXPIRE, self.queue.lasts) };
        self.ask(self.env.tokens.next(), RequestKind::Pass(old));
    }

    fn ask(&mut self, token: OwnerToken, mut kind: RequestKind) {
        let (now, queue) = (self.env.now, &mut *self.queue);
        let expire = queue.waiters.front().map_or(MIN_EXPIRE, |leader| leader.settings.expire);
        if let RequestKind::Pass(old) = &mut kind {
            // Its claim, if the lock is granted, is one of the asker's lease.
            (old.expire, old.lasts) = (expire, queue.lasts);
        }
        self.effects.acquire = Some(AcquireRequest {
            key: self.env.key.clone(),
            token: token.clone(),
            kind: kind.clone(),
            expire,
            block: queue.waiters.len().clamp(1, LARGEST_BLOCK) as u32,
            wait: queue.waiters.is_patient(now),
        });
        self.effects.asker = None;
        queue.lasts = queue.lasts.max(now + expire);
        let passes = matches!(kind, RequestKind::Pass(_));
        let pending = Pending {
            token,
            kind,
            expire,
            sent: Some(now),
            asker: None,
            repeated: false,
            granted: false,
            others: false,
        };
        queue.phase = if passes { Phase::Passing(pending) } else { Phase::Asking(pending) };
    }
}
