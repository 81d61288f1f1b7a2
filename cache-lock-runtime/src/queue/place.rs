//! The place of one key: its local waiters, and how far their manager has come with it.
//!
//! It is a machine without a clock or a network: told what happened and when, it changes its state
//! and says what is to be done. The protocol is in `docs/protocol.md`; traces of its model are
//! replayed against this code.

use std::{mem, sync::Arc};

pub(crate) use self::effects::{Effects, Scene, TakeOver};
use self::{
    line::Line,
    phase::{Ask, Asking, Hold, Phase, Registered, Releasing, Tenure},
};
use super::{
    cohort::{Cohort, Turn},
    waiter::{Refusal, Waiter},
};
use crate::{
    clock::Moment,
    error::{BackendError, BackendErrorKind},
    lease::{Lease, valid_until},
    options::{MIN_EXPIRE, Settings},
    owner::OwnerToken,
    retry::Pace,
    store::{Ended, Failed, Fate, Question, Reply},
};

mod delayed;
mod effects;
mod line;
mod phase;
mod pushes;
#[cfg(test)]
mod tests;
#[cfg(all(test, feature = "redis"))]
pub(super) mod view;

/// The most numbers that are reserved at a time.
const LARGEST_BLOCK: usize = 1000;

#[derive(Debug)]
pub(crate) struct Place {
    phase: Phase,
    /// Those who wait, without the one that holds the lock. The first of them leads: it is its
    /// lease that is asked for.
    waiters: Line,
    /// Why there is no lock to be had, as far as is known.
    refusal: Option<Refusal>,
    pace: Pace,
    /// When the last record has run out of a token that the place holds, has held or asks under. Tokens
    /// whose questions were not answered are the store's, which has their times.
    lasts: Moment,
}

impl Place {
    pub(crate) fn new(random: u64) -> Self {
        let (waiters, pace, lasts) = (Line::default(), Pace::new(random), Moment::from_nanos(0));
        Self { phase: Phase::Idle, waiters, refusal: None, pace, lasts }
    }

    /// Nobody waits, holds or asks.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    /// Somebody waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// A waiter comes.
    pub(crate) fn join(&mut self, scene: &Scene<'_>, waiter: &Arc<Waiter>, effects: &mut Effects) {
        if self.waiters.is_empty() && matches!(self.phase, Phase::Asking(_)) {
            // What those were told who have gone is no news any more.
            self.refusal = None;
        }
        self.waiters.push_back(waiter);
        match &mut self.phase {
            Phase::Idle => self.ask_directly(scene, None, waiter, effects),
            Phase::Releasing(Releasing { token, aside }) => {
                let due = self.pace.yielding(scene.now);
                if *aside && due < waiter.patience {
                    self.stand_back(scene, waiter, due);
                } else {
                    // Whichever comes first, the release or the pass: the lock is ours, or that of
                    // whoever waited before.
                    let token = token.clone();
                    self.ask_directly(scene, Some(token), waiter, effects);
                }
            }
            Phase::Aside(until) if scene.now < *until && *until < waiter.patience => {
                let due = *until;
                self.stand_back(scene, waiter, due);
            }
            Phase::Aside(_) => self.ask_directly(scene, None, waiter, effects),
            Phase::Holding(_) => self.go_on_after_loss(scene, effects),
            Phase::Asking(asking) => effects.take_over = asking.take_over(scene),
            Phase::Registered(_) => {}
        }
        if waiter.patience <= scene.now && !matches!(self.phase, Phase::Asking(_)) {
            self.refuse_late(scene, None, effects);
        }
    }

    /// The lock was left free for others, so the first who comes gives them time. Else a caller that
    /// comes again and again would have it each time.
    fn stand_back(&mut self, scene: &Scene<'_>, waiter: &Waiter, due: Moment) {
        let (token, expire) = (scene.owners.next(), waiter.settings.expire);
        let registered = Registered { token, instead_of: None, expire, listed: false, due };
        self.phase = Phase::Registered(registered);
    }

    /// Takes the lock for a caller that need not wait, where the store answers at once.
    pub(crate) fn take(
        &mut self,
        scene: &Scene<'_>,
        settings: Settings,
        enclosing: Option<&Arc<Lease>>,
        ask: impl FnOnce(&Question) -> Reply,
    ) -> Option<Arc<Lease>> {
        if !self.is_idle() {
            return None;
        }
        let (key, token, expire) = (scene.key.clone(), scene.owners.next(), settings.expire);
        let (instead_of, aside, block, wait, listed) = (None, false, 1, false, false);
        let lasts = self.lasts;
        let question =
            Question { key, token, instead_of, lasts, aside, expire, block, wait, listed };
        let Reply::Got { mut numbers, sent_at, others } = ask(&question) else { return None };
        let fence = numbers.take()?;
        let tenure = Tenure {
            token: question.token,
            expire,
            valid_until: valid_until(sent_at, expire),
            numbers,
            cohort: self.cohort(scene, sent_at, others, true),
        };
        let lease = tenure.lease(scene, settings, enclosing.cloned(), fence, sent_at);
        self.hold(Hold { tenure, lease: Arc::clone(&lease), handed: None });
        Some(lease)
    }

    /// A waiter's future is gone.
    pub(crate) fn leave(&mut self, scene: &Scene<'_>, waiter: &Arc<Waiter>, effects: &mut Effects) {
        match waiter.leave() {
            Some(lease) => {
                let in_time = lease.release(scene.now);
                self.end(scene, &lease, in_time, effects);
            }
            None => self.remove(scene, waiter, effects),
        }
    }

    /// What a waiter is told whose time is over; `None` if it has to wait for the first answer.
    pub(crate) fn give_up(
        &mut self,
        scene: &Scene<'_>,
        waiter: &Arc<Waiter>,
        effects: &mut Effects,
    ) -> Option<Refusal> {
        let (overdue, delayed) = match &self.phase {
            Phase::Asking(Asking { sent: Some(sent), expire, .. }) => {
                (sent.after(scene.attempt(*expire)), false)
            }
            Phase::Asking(_) => (Moment::FAR, true),
            _ => (Moment::FAR, false),
        };
        let refusal = match &self.refusal {
            Some(refusal) if scene.now < overdue => refusal.clone(),
            _ if delayed && scene.now >= waiter.end => Refusal::Backend(BackendError::overloaded()),
            _ if scene.now >= overdue || scene.now >= waiter.end => {
                let message = "the server did not answer";
                Refusal::Backend(BackendError::new(BackendErrorKind::Timeout, message))
            }
            _ => return None,
        };
        self.remove(scene, waiter, effects);
        Some(refusal)
    }

    fn remove(&mut self, scene: &Scene<'_>, waiter: &Arc<Waiter>, effects: &mut Effects) {
        self.waiters.remove(waiter);
        match &mut self.phase {
            Phase::Asking(asking)
                if asking.asker.as_ref().is_some_and(|asker| Arc::ptr_eq(asker, waiter)) =>
            {
                self.let_go(scene, effects);
            }
            Phase::Registered(_) if self.waiters.is_empty() => self.stop_waiting(scene, effects),
            _ => {}
        }
    }

    /// A question was answered.
    pub(crate) fn answered(
        &mut self,
        scene: &Scene<'_>,
        token: &OwnerToken,
        answer: Result<Reply, Failed>,
        effects: &mut Effects,
    ) {
        let asking = match mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Asking(asking) if asking.token == *token => asking,
            other => {
                self.phase = other;
                return;
            }
        };
        let busy = |no_expiry| Some(Refusal::Busy { no_expiry });
        match answer {
            Ok(Reply::Got { numbers, sent_at, others }) => {
                let valid_until = valid_until(sent_at, asking.expire);
                let found = !asking.handed && !asking.granted;
                let cohort = self.cohort(scene, sent_at, others || asking.others, found);
                let Asking { token, expire, .. } = asking;
                self.got(scene, Tenure { token, expire, valid_until, numbers, cohort }, effects);
            }
            Ok(Reply::Busy { remaining, ours, listed }) => {
                self.refuse_late(scene, busy(remaining.is_none()), effects);
                let due = if listed && ours {
                    self.pace.listed(scene.now, remaining)
                } else {
                    self.pace.polling(scene.now, remaining)
                };
                self.register(scene, asking, listed, due, effects);
            }
            Ok(Reply::Free { listed }) => {
                self.refuse_late(scene, busy(false), effects);
                let due = self.pace.yielding(scene.now);
                self.register(scene, asking, listed, due, effects);
            }
            Err(failed) => self.failed(scene, asking, failed, effects),
        }
    }

    fn got(&mut self, scene: &Scene<'_>, tenure: Tenure, effects: &mut Effects) {
        self.pace.reset();
        // What was passed on is answered for.
        self.lasts = scene.now.after(tenure.expire);
        if scene.now >= tenure.valid_until {
            let message = "the server's answer took longer than the lease that it granted";
            let error = BackendError::new(BackendErrorKind::Timeout, message);
            self.refuse_late(scene, Some(Refusal::Backend(error)), effects);
            if self.waiters.is_empty() {
                return self.release(tenure, false, effects);
            }
            return self.ask(scene, Ask::again(tenure.token), effects);
        }
        match self.waiters.front() {
            Some(front) if front.settings.expire == tenure.expire => {
                let acquired = tenure.cohort.asked();
                self.hand_over(scene, tenure, acquired, effects);
            }
            // Another one leads by now than when it was asked.
            Some(_) => self.next(scene, tenure, effects),
            None => self.release(tenure, false, effects),
        }
        self.refuse_late(scene, Some(Refusal::Busy { no_expiry: false }), effects);
    }

    fn failed(&mut self, scene: &Scene<'_>, asking: Asking, failed: Failed, effects: &mut Effects) {
        let Failed { error, fate } = failed;
        // It may have been broken for long, and the server is there: nobody is told before it was
        // asked over another connection.
        let instead_of = match fate {
            Fate::Broken => Some(None),
            // It may have been granted on the connection that is not read.
            Fate::Abandoned => Some(Some(asking.token.clone())),
            Fate::Refused | Fate::Unanswered => None,
        };
        if let Some(instead_of) = instead_of
            && !asking.again
            && !self.waiters.is_empty()
        {
            let ask = Ask { again: true, ..Ask::anew(scene, instead_of) };
            return self.ask(scene, ask, effects);
        }
        let patient = error.is_transient();
        let refusal = Refusal::Backend(error);
        if !patient {
            self.refuse_all(&refusal, effects);
        }
        self.refuse_late(scene, Some(refusal), effects);
        let due = self.pace.after_failure(scene.now);
        let asking = match fate {
            Fate::Refused => asking,
            Fate::Unanswered | Fate::Broken | Fate::Abandoned => {
                let token = scene.owners.next();
                Asking { token, instead_of: None, listed: false, granted: false, ..asking }
            }
        };
        let (token, instead_of, listed) = (asking.token, asking.instead_of, asking.listed);
        let expire = asking.expire;
        self.phase = Phase::Registered(Registered { token, instead_of, expire, listed, due });
        if self.waiters.is_empty() {
            self.stop_waiting(scene, effects);
        }
    }

    /// A waiter's future is being polled: what it was handed, it takes.
    pub(crate) fn is_polled(&mut self, waiter: &Arc<Waiter>) {
        if let Phase::Holding(hold) = &mut self.phase {
            hold.handed.take_if(|(handed, _)| Arc::ptr_eq(handed, waiter));
        }
    }

    /// A section ends. `in_time` says that its lease had not ended before.
    pub(crate) fn end(
        &mut self,
        scene: &Scene<'_>,
        lease: &Arc<Lease>,
        in_time: bool,
        effects: &mut Effects,
    ) {
        let Hold { mut tenure, .. } = match mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Holding(hold) if Arc::ptr_eq(&hold.lease, lease) => hold,
            other => {
                self.phase = other;
                return;
            }
        };
        self.lasts = self.lasts.max(lease.lasts());
        if in_time {
            tenure.valid_until = tenure.valid_until.max(lease.deadline());
            self.next(scene, tenure, effects);
            effects.handed_over = matches!(self.phase, Phase::Holding(_));
        } else if self.waiters.is_empty() {
            self.release(tenure, false, effects);
        } else {
            self.ask(scene, Ask::anew(scene, Some(tenure.token)), effects);
        }
    }

    /// The lease of a section may have been lost: who waits is not to wait for its end.
    pub(crate) fn go_on_after_loss(&mut self, scene: &Scene<'_>, effects: &mut Effects) {
        if let Phase::Holding(hold) = &self.phase
            && !hold.lease.is_valid(scene.now)
            && !self.waiters.is_empty()
        {
            let token = hold.tenure.token.clone();
            self.lasts = self.lasts.max(hold.lease.lasts());
            self.ask(scene, Ask::anew(scene, Some(token)), effects);
        }
    }

    /// The lease under a token is not ours any more: that of the section that runs under it now.
    pub(crate) fn held_under(&self, token: &OwnerToken) -> Option<Arc<Lease>> {
        match &self.phase {
            Phase::Holding(hold) if hold.tenure.token == *token => Some(Arc::clone(&hold.lease)),
            _ => None,
        }
    }

    /// What follows a section while the lease lasts.
    fn next(&mut self, scene: &Scene<'_>, tenure: Tenure, effects: &mut Effects) {
        while self.waiters.front().is_some_and(|front| scene.now >= front.end)
            && let Some(late) = self.waiters.pop_front()
        {
            effects.wake.extend(late.refuse(Refusal::Busy { no_expiry: false }));
        }
        let Some(front) = self.waiters.front() else {
            let aside = tenure.cohort.is_aside(scene.now);
            return self.release(tenure, aside, effects);
        };
        match tenure.cohort.turn(scene.now) {
            Turn::Next if tenure.suits(&front.settings, scene.now) => {
                self.hand_over(scene, tenure, scene.now, effects);
            }
            Turn::Next | Turn::Pass => {
                self.ask(scene, Ask::anew(scene, Some(tenure.token)), effects);
            }
            Turn::Free => {
                let ask = Ask { aside: true, ..Ask::anew(scene, Some(tenure.token)) };
                self.ask(scene, ask, effects);
            }
        }
    }

    /// Hands the lease to the first waiter, which counts as its holder from `acquired` on.
    fn hand_over(
        &mut self,
        scene: &Scene<'_>,
        mut tenure: Tenure,
        acquired: Moment,
        effects: &mut Effects,
    ) {
        let Some(fence) = tenure.numbers.take() else {
            return self.ask(scene, Ask::anew(scene, Some(tenure.token)), effects);
        };
        let Some(waiter) = self.waiters.pop_front() else {
            return self.release(tenure, false, effects);
        };
        tenure.cohort.handed_over();
        let enclosing = waiter.enclosing.clone();
        let lease = tenure.lease(scene, waiter.settings, enclosing, fence, acquired);
        let by = scene.now.after(scene.polled_within(waiter.settings.expire));
        effects.wake.extend(waiter.hand(Arc::clone(&lease)));
        self.hold(Hold { tenure, lease, handed: Some((waiter, by)) });
    }

    fn hold(&mut self, hold: Hold) {
        self.refusal = Some(Refusal::Busy { no_expiry: false });
        self.phase = Phase::Holding(hold);
    }

    fn release(&mut self, tenure: Tenure, aside: bool, effects: &mut Effects) {
        let Tenure { token, expire, .. } = tenure;
        self.phase = Phase::Releasing(Releasing { token: token.clone(), aside });
        effects.release = Some(Ended { token, expire, lasts: self.lasts, aside });
    }

    /// `found`: the lock was free when it was asked for.
    fn cohort(&mut self, scene: &Scene<'_>, asked: Moment, others: bool, found: bool) -> Cohort {
        let aside = Cohort::aside(asked, scene.told, found, self.pace.random());
        Cohort::new(asked, others, aside)
    }

    pub(crate) fn is_releasing(&self) -> bool {
        matches!(self.phase, Phase::Releasing(_))
    }

    /// A release has come to its end. False if the lock was passed on meanwhile.
    pub(crate) fn released(&mut self, scene: &Scene<'_>, token: &OwnerToken) -> bool {
        match &self.phase {
            Phase::Releasing(releasing) if releasing.token == *token => {
                let aside = releasing.aside;
                let until = self.pace.yielding(scene.now);
                self.phase = if aside { Phase::Aside(until) } else { Phase::Idle };
                true
            }
            _ => false,
        }
    }

    fn register(
        &mut self,
        scene: &Scene<'_>,
        asking: Asking,
        listed: bool,
        due: Moment,
        effects: &mut Effects,
    ) {
        let Asking { token, expire, granted, .. } = asking;
        // What does not ask to wait stays on the list where an earlier question has put it.
        let listed = listed || asking.listed;
        if granted && !self.waiters.is_empty() {
            return self.ask(scene, Ask::again(token), effects);
        }
        let instead_of = None;
        self.phase = Phase::Registered(Registered { token, instead_of, expire, listed, due });
        if self.waiters.is_empty() {
            self.stop_waiting(scene, effects);
        }
    }

    fn stop_waiting(&mut self, scene: &Scene<'_>, effects: &mut Effects) {
        let Phase::Registered(registered) = mem::replace(&mut self.phase, Phase::Idle) else {
            return;
        };
        let Registered { token, instead_of, expire, listed, .. } = registered;
        // What was to be released before stays so.
        if let Some(token) = if listed { Some(token) } else { instead_of } {
            let lasts = self.lasts.max(scene.now.after(expire));
            effects.release = Some(Ended::new(token, expire, lasts));
        }
    }

    /// When [`look`](Self::look) has something to do.
    pub(crate) fn due(&self, scene: &Scene<'_>) -> Option<Moment> {
        match &self.phase {
            Phase::Registered(registered) => Some(registered.due),
            Phase::Aside(until) => Some(*until),
            Phase::Holding(Hold { handed: Some((_, by)), .. }) => Some(*by),
            Phase::Asking(Asking { asker: Some(_), sent: Some(sent), expire, .. }) => {
                Some(sent.after(scene.polled_within(*expire)))
            }
            // The asker is the only waiter, and sets no timer while its question is out.
            Phase::Asking(Asking { asker: Some(asker), sent: None, .. }) => Some(asker.end),
            _ => None,
        }
    }

    /// Does what is due.
    pub(crate) fn look(&mut self, scene: &Scene<'_>, effects: &mut Effects) {
        if self.due(scene).is_none_or(|due| scene.now < due) {
            return;
        }
        match &mut self.phase {
            Phase::Registered(Registered { token, instead_of, listed, .. }) => {
                let (token, instead_of) = (token.clone(), instead_of.take());
                let ask = Ask { instead_of, listed: *listed, ..Ask::again(token) };
                self.ask(scene, ask, effects);
            }
            Phase::Holding(Hold { lease, handed, .. }) => {
                if let Some((waiter, _)) = handed.take()
                    && waiter.miss()
                {
                    let lease = Arc::clone(lease);
                    let in_time = lease.release(scene.now);
                    self.end(scene, &lease, in_time, effects);
                }
            }
            Phase::Asking(Asking { sent: None, .. }) => {
                let overloaded = Refusal::Backend(BackendError::overloaded());
                self.refuse_late(scene, Some(overloaded), effects);
                self.let_go(scene, effects);
            }
            Phase::Asking(asking) => effects.take_over = asking.take_over(scene),
            Phase::Aside(_) => self.phase = Phase::Idle,
            Phase::Idle | Phase::Releasing(_) => {}
        }
    }

    /// The manager ends.
    pub(crate) fn close(&mut self, scene: &Scene<'_>, effects: &mut Effects) {
        self.refuse_all(&Refusal::ShutDown, effects);
        match &mut self.phase {
            Phase::Asking(_) => self.let_go(scene, effects),
            Phase::Registered(_) => self.stop_waiting(scene, effects),
            Phase::Aside(_) => self.phase = Phase::Idle,
            _ => {}
        }
    }

    fn refuse_all(&mut self, refusal: &Refusal, effects: &mut Effects) {
        while let Some(waiter) = self.waiters.pop_front() {
            effects.wake.extend(waiter.refuse(refusal.clone()));
        }
    }

    /// Tells those whose time is over why there is no lock to be had.
    fn refuse_late(&mut self, scene: &Scene<'_>, news: Option<Refusal>, effects: &mut Effects) {
        self.refusal = news.or(self.refusal.take());
        let Some(refusal) = &self.refusal else { return };
        while let Some(late) = self.waiters.pop_late(scene.now) {
            effects.wake.extend(late.refuse(refusal.clone()));
        }
        if self.waiters.is_empty() && matches!(self.phase, Phase::Registered(_)) {
            self.stop_waiting(scene, effects);
        }
    }

    /// Asks through the future of the only waiter: no hop to another thread.
    fn ask_directly(
        &mut self,
        scene: &Scene<'_>,
        instead_of: Option<OwnerToken>,
        waiter: &Arc<Waiter>,
        effects: &mut Effects,
    ) {
        self.refusal = None;
        let asker = Some(Arc::clone(waiter));
        self.ask(scene, Ask { asker, ..Ask::anew(scene, instead_of) }, effects);
    }

    fn ask(&mut self, scene: &Scene<'_>, ask: Ask, effects: &mut Effects) {
        let Ask { token, instead_of, aside, granted, listed, again, asker } = ask;
        let expire = self.waiters.front().map_or(MIN_EXPIRE, |leader| leader.settings.expire);
        effects.ask = Some(Question {
            key: scene.key.clone(),
            token: token.clone(),
            instead_of: instead_of.clone(),
            lasts: self.lasts,
            aside,
            expire,
            block: self.waiters.len().clamp(1, LARGEST_BLOCK) as u32,
            wait: self.waiters.is_patient(scene.now),
            listed,
        });
        effects.asker.clone_from(&asker);
        self.lasts = self.lasts.max(scene.now.after(expire));
        let handed = granted || instead_of.is_some();
        self.phase = Phase::Asking(Asking {
            token,
            instead_of,
            expire,
            sent: Some(scene.now),
            listed,
            granted: false,
            handed,
            others: false,
            again,
            asker,
        });
    }
}
