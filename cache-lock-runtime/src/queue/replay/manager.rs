//! A manager: the place of the key, those who wait there, and what is on its way.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use lock_model::{ManagerView, Request};
use redis::Value;

use super::is_being_released;
use crate::{
    clock::Moment,
    error::{BackendError, BackendErrorKind, LostReason},
    key::LockKey,
    lease::{Lease, drift},
    options::{OnLost, Settings},
    owner::{OwnerToken, Owners},
    queue::{
        cohort::Turn,
        place::{Effects, Place, Scene, view::Seen},
        waiter::{Outcome, Waiter},
    },
    store::{
        Extended, Failed, Fate, Push, Question, Reply,
        redis::replay::{Answered, Asked, TICK, Tokens},
    },
};

/// The longest time that a request may take.
const ATTEMPT: Duration = Duration::from_secs(1);

/// A request on its way, and its answer as soon as the server has carried it out.
pub(super) struct Flight {
    pub(super) request: Request,
    pub(super) asked: Asked,
    pub(super) sent_at: Moment,
    pub(super) value: Option<Value>,
}

pub(super) struct Manager {
    key: LockKey,
    owners: Arc<Owners>,
    pub(super) place: Place,
    /// Its clock.
    pub(super) now: Moment,
    /// The waiters of the place.
    waiters: VecDeque<Arc<Waiter>>,
    /// The lease of the section that runs.
    pub(super) section: Option<Arc<Lease>>,
    /// A question that waits for a connection.
    pub(super) unsent: Option<Question>,
    /// What the connection carries, in the order in which it is answered.
    pub(super) flights: Vec<Flight>,
    /// What a connection that was cut has carried and the server will carry out.
    pub(super) late: VecDeque<Flight>,
    pub(super) pushes: Vec<Push>,
    /// Tokens whose release or forgetting was answered.
    pub(super) over: Vec<OwnerToken>,
    /// An extension that was answered when the lease was over, from when and for how long.
    extended_late: Option<(Moment, Duration)>,
    /// What the place wants done.
    pub(super) effects: Effects,
}

impl Manager {
    pub(super) fn new(key: &LockKey, owners: &Arc<Owners>) -> Self {
        Self {
            key: key.clone(),
            owners: Arc::clone(owners),
            place: Place::new(1),
            now: Moment::from_nanos(1_000_000_000_000),
            waiters: VecDeque::new(),
            section: None,
            unsent: None,
            flights: Vec::new(),
            late: VecDeque::new(),
            pushes: Vec::new(),
            over: Vec::new(),
            extended_late: None,
            effects: Effects::default(),
        }
    }

    /// Lets something happen to the place, as [`Queues::at`](crate::queue::Queues::at) does.
    fn at<R>(
        &mut self,
        now: Moment,
        event: impl FnOnce(&mut Place, &Scene<'_>, &mut Effects) -> R,
    ) -> R {
        let Self { key, owners, place, effects, .. } = self;
        let scene =
            Scene { key, seat: None, manager: 1, owners, attempt: ATTEMPT, told: true, now };
        let result = event(place, &scene, effects);
        if place.is_idle() {
            *place = Place::new(now.as_nanos());
        }
        result
    }

    /// A waiter comes. The model may have it come when the lease of the section that runs is over,
    /// before that is noticed. Here who comes notices, so it comes right before.
    pub(super) fn arrive(&mut self, expire: Duration) {
        let settings = Settings {
            timeout: Duration::MAX,
            expire,
            renew: true,
            max_hold: None,
            on_lost: OnLost::Cancel,
            background_release: false,
        };
        let waiter = Arc::new(Waiter::new(settings, None, Moment::FAR, Moment::FAR));
        let end = self.section.as_ref().map_or(Moment::FAR, |lease| lease.deadline());
        let now = self.now.min(end.before(Duration::from_nanos(1)));
        self.waiters.push_back(Arc::clone(&waiter));
        self.at(now, |place, scene, effects| place.join(scene, &waiter, effects));
    }

    /// A waiter gives up, or its future is dropped.
    pub(super) fn cancel(&mut self, salt: usize, connected: bool) -> Result<(), String> {
        let which = salt / 2 % self.waiters.len().max(1);
        let waiter = self.waiters.remove(which).ok_or("nobody waits")?;
        self.at(self.now, |place, scene, effects| {
            if salt.is_multiple_of(2) || place.give_up(scene, &waiter, effects).is_none() {
                place.leave(scene, &waiter, effects);
            }
        });
        // Without a connection the model knows that nothing was asked. Here it is known when none
        // can be opened.
        if !connected && self.waiters.is_empty() && self.unsent.is_some() {
            self.refused();
        }
        Ok(())
    }

    /// No connection could be opened for a question.
    fn refused(&mut self) {
        if let Some(question) = self.unsent.take() {
            self.fail(&question.token, Fate::Refused);
        }
    }

    fn fail(&mut self, token: &OwnerToken, fate: Fate) {
        let error = BackendError::new(BackendErrorKind::Unreachable, "replayed");
        let failed = Failed { error, fate };
        self.at(self.now, |place, scene, effects| {
            place.answered(scene, token, Err(failed), effects);
        });
    }

    /// The section ends, and is followed by what the walk tells.
    pub(super) fn end(&mut self, turn: Turn) -> Result<(), String> {
        let lease = self.section.take().ok_or("no section runs")?;
        if !lease.release(self.now) {
            return Err("the section has outlived its lease".to_owned());
        }
        if let Some(replaced) = self.place.decide(turn, self.now) {
            self.waiters[0] = replaced;
        }
        self.at(self.now, |place, scene, effects| place.end(scene, &lease, true, effects));
        if self.effects.handed_over != (turn == Turn::Next) {
            return Err(format!("handed over: {}", self.effects.handed_over));
        }
        Ok(())
    }

    /// The lease is over by the clock.
    pub(super) fn lose(&mut self) -> Result<(), String> {
        let lease = self.section.take().ok_or("no section runs")?;
        if let Some((sent_at, expire)) = self.extended_late.take() {
            lease.extended(self.now, sent_at, expire);
        }
        self.at(self.now, |place, scene, effects| place.go_on_after_loss(scene, effects));
        // The body is cancelled. Who waits does not wait for that.
        if lease.release(self.now) {
            return Err("the lease is not over".to_owned());
        }
        self.at(self.now, |place, scene, effects| place.end(scene, &lease, false, effects));
        Ok(())
    }

    /// The pause is over. It is a little longer than in the model, so that waiters fall out of step.
    pub(super) fn look(&mut self) {
        if let Seen::Registered { due, .. } | Seen::Aside(due) = self.place.seen() {
            self.at(self.now.max(due), |place, scene, effects| place.look(scene, effects));
        }
    }

    pub(super) fn pushed(&mut self, push: &Push) -> Result<(), String> {
        let (Push::Grant { token, .. } | Push::Demand { token, .. } | Push::Soon { token, .. }) =
            push
        else {
            return Err(format!("{push:?} came"));
        };
        let token = self.owners.read(token).ok_or("a push for another manager")?;
        self.at(self.now, |place, scene, effects| match push {
            Push::Grant { .. } => place.granted(scene, token, effects),
            Push::Soon { .. } => place.left_free(scene, token, effects),
            _ => place.demanded(scene, token, effects),
        });
        Ok(())
    }

    /// An answer is read.
    pub(super) fn answered(&mut self, flight: &Flight) -> Result<(), String> {
        let Flight { asked, value, .. } = flight;
        let value = value.as_ref().ok_or("not carried out yet")?;
        // The model takes a whole tick off a lease. It is as if it had been sent so much earlier.
        let sent_at = match asked {
            Asked::Question { question: Question { expire, .. }, .. } => {
                flight.sent_at.before(TICK - drift(*expire))
            }
            Asked::Extension(extension) => flight.sent_at.before(TICK - drift(extension.expire)),
            Asked::Release(_) => flight.sent_at,
        };
        match (asked, asked.read(value, sent_at).ok_or("not an answer")?) {
            (Asked::Question { question, .. }, Answered::Reply(reply)) => {
                self.replied(&question.token, reply)
            }
            (Asked::Extension(extension), Answered::Extended(Extended::Kept)) => {
                self.extended(&extension.token, sent_at, extension.expire);
                Ok(())
            }
            (Asked::Extension(extension), Answered::Extended(Extended::Gone)) => {
                self.gone(&extension.token);
                Ok(())
            }
            (Asked::Release(ended), Answered::Released(_)) => {
                self.at(self.now, |place, scene, _| place.released(scene, &ended.token));
                self.over.push(ended.token.clone());
                Ok(())
            }
            (_, answer) => Err(format!("{asked:?} was answered by {answer:?}")),
        }
    }

    fn replied(&mut self, token: &OwnerToken, reply: Reply) -> Result<(), String> {
        let told = match &reply {
            Reply::Busy { remaining, ours: true, listed: true } => *remaining,
            _ => None,
        };
        self.at(self.now, |place, scene, effects| {
            place.answered(scene, token, Ok(reply), effects);
        });
        // Who is listed asks again when the lease is over, but not much sooner or later.
        if let (Some(remaining), Seen::Registered { due, .. }) = (told, self.place.seen()) {
            let pause = remaining.min(TICK * 2);
            let wait = self.now.until(due);
            if wait < pause || wait > pause + TICK / 8 {
                return Err(format!("a pause of {wait:?} for a lease of {remaining:?}"));
            }
        }
        Ok(())
    }

    /// As the renewer does, but for one thing: if the section for which it asked was followed by
    /// another one under the same lease, it lets that one count on less.
    fn extended(&mut self, token: &OwnerToken, sent_at: Moment, expire: Duration) {
        let Some(lease) = self.place.held_under(token) else { return };
        if lease.is_valid(self.now) {
            lease.extended(self.now, sent_at, expire);
        } else {
            // What is over is marked as lost by this, which the model does in a step of its own.
            self.extended_late = Some((sent_at, expire));
        }
    }

    /// As the renewer does. If nobody waits the section ends by that, and nothing is released that
    /// is known to be gone, as in the guard.
    fn gone(&mut self, token: &OwnerToken) {
        let Some(lease) = self.place.held_under(token) else { return };
        lease.lose(LostReason::Gone);
        self.section = None;
        self.extended_late = None;
        self.at(self.now, |place, scene, effects| {
            place.go_on_after_loss(scene, effects);
            let in_time = lease.release(scene.now);
            place.end(scene, &lease, in_time, effects);
            if place.is_releasing() {
                effects.release = None;
                place.released(scene, token);
            }
        });
    }

    /// The connection is cut, and so many of its requests reach the server all the same.
    pub(super) fn cut(&mut self, late: usize) {
        let open = std::mem::take(&mut self.flights).into_iter();
        self.late.extend(open.filter(|flight| flight.value.is_none()).take(late));
        self.pushes.clear();
    }

    /// That is noticed.
    pub(super) fn disconnected(&mut self, salt: usize) {
        if let Seen::Asking { token, .. } = self.place.seen() {
            let fate = if salt.is_multiple_of(2) { Fate::Broken } else { Fate::Unanswered };
            self.fail(&token, fate);
        }
        self.at(self.now, |place, scene, _| place.missed_pushes(scene));
    }

    /// There is a new connection, over which the model asks anew. A question that waits for it is
    /// sent as it is if it `suits`; else it is one that failed for want of a connection and is asked
    /// again after a pause.
    pub(super) fn reconnected(&mut self, suits: impl FnOnce(&Question) -> bool) {
        self.at(self.now, |place, scene, _| place.missed_pushes(scene));
        match self.unsent.take() {
            Some(question) if suits(&question) => self.effects.ask = Some(question),
            waits => {
                self.unsent = waits;
                self.refused();
                if matches!(self.place.seen(), Seen::Registered { .. }) {
                    self.look();
                }
            }
        }
    }

    /// A release of a token is on its way, or was answered.
    pub(super) fn has_released(
        &self,
        tokens: &Tokens,
        view: &ManagerView,
        token: &OwnerToken,
    ) -> bool {
        self.over.contains(token) || is_being_released(tokens, view, token)
    }

    /// The section of the first waiter begins. Returns its number.
    pub(super) fn begin(&mut self) -> Result<i64, String> {
        let waiter = self.waiters.pop_front().ok_or("nobody waits")?;
        let Poll::Ready(Outcome::Handed(lease)) =
            waiter.poll_outcome(&mut Context::from_waker(Waker::noop()))
        else {
            return Err("no section begins".to_owned());
        };
        let number = lease.fence.as_i64();
        self.section = Some(lease);
        Ok(number)
    }
}
