//! A manager of the walk: the queue of the key, its waiters, and the requests on their way.

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
    clock::Instant,
    error::{BackendError, BackendErrorKind, LostReason},
    key::LockKey,
    lease::{Lease, drift},
    options::{OnLost, Settings},
    owner::{OwnerToken, TokenSource},
    protocol::{
        cohort::Succession,
        effects::{Effects, Env},
        key_queue::KeyQueue,
        machine::Machine,
        messages::{AcquireError, AcquireRequest, AcquireResponse, Extended, Fate, Push},
        view::Seen,
        waiter::{WaitOutcome, Waiter},
    },
    store::redis::replay::{Answered, Asked, TICK, Tokens},
};

/// The longest time that a request may take.
const ATTEMPT: Duration = Duration::from_secs(1);

/// A request on its way, and its answer as soon as the server has carried it out.
pub(super) struct OpenRequest {
    pub(super) request: Request,
    pub(super) asked: Asked,
    pub(super) sent_at: Instant,
    pub(super) value: Option<Value>,
}

pub(super) struct ReplayedManager {
    key: LockKey,
    source: Arc<TokenSource>,
    pub(super) queue: KeyQueue,
    /// Its clock.
    pub(super) now: Instant,
    /// The waiters of the queue.
    waiters: VecDeque<Arc<Waiter>>,
    /// The lease of the section that runs.
    pub(super) section: Option<Arc<Lease>>,
    /// A request that waits for a connection.
    pub(super) unsent: Option<AcquireRequest>,
    /// What the connection carries, in the order in which it is answered.
    pub(super) flights: Vec<OpenRequest>,
    /// What a connection that was cut has carried and the server will carry out.
    pub(super) late: VecDeque<OpenRequest>,
    pub(super) pushes: Vec<Push>,
    /// Tokens whose release or forgetting was answered.
    pub(super) over: Vec<OwnerToken>,
    /// An extension that was answered when the lease was over, from when and for how long.
    extended_late: Option<(Instant, Duration)>,
    /// What the queue wants done.
    pub(super) effects: Effects,
}

impl ReplayedManager {
    pub(super) fn new(key: &LockKey, source: &Arc<TokenSource>) -> Self {
        Self {
            key: key.clone(),
            source: Arc::clone(source),
            queue: KeyQueue::new(1),
            now: Instant::from_nanos(1_000_000_000_000),
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

    /// An event, as in `KeyQueues::at`.
    fn at<R>(&mut self, now: Instant, event: impl FnOnce(&mut Machine<'_>) -> R) -> R {
        let Self { key, source: tokens, queue, effects, .. } = self;
        let env = Env { key, manager: 1, tokens, attempt: ATTEMPT, told: true, now };
        let result = event(&mut Machine { queue, env: &env, effects });
        if queue.is_idle() {
            *queue = KeyQueue::new(now.as_nanos());
        }
        result
    }

    /// A waiter comes. The model may have it come when the lease of the section that runs is over,
    /// before that is noticed. Here the waiter notices, so it comes right before.
    pub(super) fn arrive(&mut self, expire: Duration) {
        let settings = Settings {
            timeout: Duration::MAX,
            expire,
            renew: true,
            max_hold: None,
            on_lost: OnLost::Cancel,
            background_release: false,
        };
        let waiter = Arc::new(Waiter::new(settings, None, Instant::FAR, Instant::FAR));
        let end = self.section.as_ref().map_or(Instant::FAR, |lease| lease.deadline());
        let now = self.now.min(end - Duration::from_nanos(1));
        self.waiters.push_back(Arc::clone(&waiter));
        self.at(now, |machine| machine.join(&waiter));
    }

    /// A waiter gives up, or its future is dropped.
    pub(super) fn cancel(&mut self, salt: usize, connected: bool) -> Result<(), String> {
        let which = salt / 2 % self.waiters.len().max(1);
        let waiter = self.waiters.remove(which).ok_or("no caller waits")?;
        self.at(self.now, |machine| {
            if salt.is_multiple_of(2) || machine.give_up(&waiter).is_none() {
                machine.leave(&waiter);
            }
        });
        // Without a connection the model knows that nothing was asked. Here it is known when none
        // can be opened.
        if !connected && self.waiters.is_empty() && self.unsent.is_some() {
            self.refused();
        }
        Ok(())
    }

    /// No connection could be opened for a request.
    fn refused(&mut self) {
        if let Some(request) = self.unsent.take() {
            self.fail(&request.token, Fate::Refused);
        }
    }

    fn fail(&mut self, token: &OwnerToken, fate: Fate) {
        let error = BackendError::new(BackendErrorKind::Unreachable, "replayed");
        let failed = AcquireError { error, fate };
        self.at(self.now, |machine| {
            machine.answered(token, Err(failed));
        });
    }

    /// The section ends, and is followed by what the walk tells.
    pub(super) fn end(&mut self, turn: Succession) -> Result<(), String> {
        let lease = self.section.take().ok_or("no section runs")?;
        if !lease.release(self.now) {
            return Err("the section has outlived its lease".to_owned());
        }
        if let Some(replaced) = self.queue.decide(turn, self.now) {
            self.waiters[0] = replaced;
        }
        self.at(self.now, |machine| machine.end(&lease, true));
        if self.effects.handed_over != (turn == Succession::HandOver) {
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
        self.at(self.now, |machine| machine.go_on_after_loss());
        // The body is cancelled. The waiters do not wait for that.
        if lease.release(self.now) {
            return Err("the lease is not over".to_owned());
        }
        self.at(self.now, |machine| machine.end(&lease, false));
        Ok(())
    }

    /// The pause is over. It is a little longer than in the model, so that waiters fall out of step.
    pub(super) fn on_timer(&mut self) {
        if let Seen::Registered { due, .. } | Seen::Yielded(due) = self.queue.seen() {
            self.at(self.now.max(due), |machine| machine.on_timer());
        }
    }

    pub(super) fn pushed(&mut self, push: &Push) -> Result<(), String> {
        let (Push::Grant { token, .. } | Push::Demand { token, .. } | Push::Yielded { token, .. }) =
            push
        else {
            return Err(format!("{push:?} came"));
        };
        let token = self.source.read(token).ok_or("a push for another manager")?;
        self.at(self.now, |machine| match push {
            Push::Grant { .. } => machine.granted(token),
            Push::Yielded { .. } => machine.yielded(token),
            _ => machine.demanded(token),
        });
        Ok(())
    }

    /// An answer is read.
    pub(super) fn answered(&mut self, flight: &OpenRequest) -> Result<(), String> {
        let OpenRequest { asked, value, .. } = flight;
        let value = value.as_ref().ok_or("not carried out yet")?;
        // The model takes a whole tick off a lease. It is as if it had been sent so much earlier.
        let sent_at = match asked {
            Asked::Acquire { request: AcquireRequest { expire, .. }, .. } => {
                flight.sent_at - (TICK - drift(*expire))
            }
            Asked::Extension(extension) => flight.sent_at - (TICK - drift(extension.expire)),
            Asked::Release(_) => flight.sent_at,
        };
        match (asked, asked.read(value, sent_at).ok_or("not an answer")?) {
            (Asked::Acquire { request, .. }, Answered::Acquired(reply)) => {
                self.replied(&request.token, reply)
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
                self.at(self.now, |machine| machine.released(&ended.token));
                self.over.push(ended.token.clone());
                Ok(())
            }
            (_, answer) => Err(format!("{asked:?} was answered by {answer:?}")),
        }
    }

    fn replied(&mut self, token: &OwnerToken, reply: AcquireResponse) -> Result<(), String> {
        let told = match &reply {
            AcquireResponse::Busy { remaining, ours: true, listed: true } => *remaining,
            _ => None,
        };
        self.at(self.now, |machine| {
            machine.answered(token, Ok(reply));
        });
        // A listed manager asks again when the lease is over, but not much sooner or later.
        if let (Some(remaining), Seen::Registered { due, .. }) = (told, self.queue.seen()) {
            let pause = remaining.min(TICK * 2);
            let wait = due - self.now;
            if wait < pause || wait > pause + TICK / 8 {
                return Err(format!("a pause of {wait:?} for a lease of {remaining:?}"));
            }
        }
        Ok(())
    }

    /// As the renewer does, but for one thing: if the section for which it asked was followed by
    /// another one under the same lease, it lets that one count on less.
    fn extended(&mut self, token: &OwnerToken, sent_at: Instant, expire: Duration) {
        let Some(lease) = self.queue.held_under(token) else { return };
        if lease.is_valid(self.now) {
            lease.extended(self.now, sent_at, expire);
        } else {
            // What is over is marked as lost by this, which the model does in a step of its own.
            self.extended_late = Some((sent_at, expire));
        }
    }

    /// As the renewer does. If no caller waits the section ends by that, and nothing is released that
    /// is known to be gone, as in the guard.
    fn gone(&mut self, token: &OwnerToken) {
        let Some(lease) = self.queue.held_under(token) else { return };
        lease.lose(LostReason::Gone);
        self.section = None;
        self.extended_late = None;
        self.at(self.now, |machine| {
            machine.go_on_after_loss();
            let in_time = lease.release(machine.env.now);
            machine.end(&lease, in_time);
            if machine.queue.is_releasing() {
                machine.effects.release = None;
                machine.released(token);
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
        if let Seen::Asking { token, .. } = self.queue.seen() {
            let fate = if salt.is_multiple_of(2) { Fate::Broken } else { Fate::Unanswered };
            self.fail(&token, fate);
        }
        self.at(self.now, |machine| machine.missed_pushes());
    }

    /// There is a new connection, over which the model asks anew. A request that waits for it is
    /// sent as it is if it `suits`; else it is one that failed for want of a connection and is asked
    /// again after a pause.
    pub(super) fn reconnected(&mut self, suits: impl FnOnce(&AcquireRequest) -> bool) {
        self.at(self.now, |machine| machine.missed_pushes());
        match self.unsent.take() {
            Some(request) if suits(&request) => self.effects.acquire = Some(request),
            waits => {
                self.unsent = waits;
                self.refused();
                if matches!(self.queue.seen(), Seen::Registered { .. }) {
                    self.on_timer();
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
        let waiter = self.waiters.pop_front().ok_or("no caller waits")?;
        let Poll::Ready(WaitOutcome::Handed(lease)) =
            waiter.poll_outcome(&mut Context::from_waker(Waker::noop()))
        else {
            return Err("no section begins".to_owned());
        };
        let number = lease.fence.as_i64();
        self.section = Some(lease);
        Ok(number)
    }
}
