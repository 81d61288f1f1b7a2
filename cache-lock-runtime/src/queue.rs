//! Local waiters: for each key that callers of this manager hold or wait for, one place.
//!
//! Of all who wait for a key, one at most talks to the server, and a lock that is released goes to
//! the next without any command, within bounds. What happens is decided in `place.rs`; here it is
//! carried out: questions are sent, tokens released, timers kept, pushes read.

use std::{
    fmt,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::runtime::Handle;

use self::{
    in_line::InLine,
    place::{Effects, Place, Scene, TakeOver},
    seats::{Seated, Seats},
    waiter::{Asked, Errand},
};
pub(crate) use self::{
    seats::Seat,
    waiter::{Outcome, Refusal, Waiter},
};
use crate::{
    agenda::{Agenda, Slot},
    clock::Moment,
    driver::{Driver, Running, unharmed},
    error::{BackendError, BackendErrorKind},
    key::LockKey,
    lease::Lease,
    log,
    options::Settings,
    owner::{OwnerToken, Owners},
    signal::wake_all,
    store::{
        Ended, Failed, Fate, Inbox, Progress, Push, Question, ReleaseOutcome, Reply, Store,
        memory::MemoryStore,
    },
};

mod cohort;
mod in_line;
mod place;
#[cfg(all(test, feature = "redis"))]
mod replay;
mod seats;
mod waiter;

/// A release that the caller's runtime has not brought to its end by then is the driver's.
const NEARBY: Duration = Duration::from_millis(100);

/// All places of a manager.
pub(crate) struct Queues {
    /// The manager's number.
    manager: u64,
    store: Store,
    driver: Arc<Driver>,
    owners: Arc<Owners>,
    /// The longest time that one request may take.
    attempt: Duration,
    seats: Seats,
    alarms: Agenda<Alarm>,
    /// How often a section was followed by the next one without a question.
    handed_over: AtomicU64,
    closed: AtomicBool,
}

enum Alarm {
    /// A place has to be looked at.
    Look(Arc<Seat>),
    /// The runtime that releases has not done so in time.
    Release(Box<Detached>),
}

/// A release that nobody waits for.
struct Detached {
    seat: Arc<Seat>,
    ended: Ended,
    _running: Running,
}

/// What comes of the end of a section.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The lock is the next caller's, or asked for on its behalf, or was lost before.
    Over,
    /// The server has to be told.
    Release(Ended),
    /// The store has been told.
    Released(ReleaseOutcome),
}

impl Queues {
    pub(crate) fn new(
        manager: u64,
        store: Store,
        driver: Arc<Driver>,
        owners: Arc<Owners>,
        attempt: Duration,
    ) -> Self {
        let (seats, alarms) = (Seats::default(), Agenda::precise());
        let (handed_over, closed) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { manager, store, driver, owners, attempt, seats, alarms, handed_over, closed }
    }

    pub(crate) fn handed_over(&self) -> u64 {
        self.handed_over.load(Ordering::Relaxed)
    }

    /// The number of keys that are held or waited for, or whose release is on its way.
    pub(crate) fn len(&self) -> usize {
        self.seats.len()
    }

    /// Takes a lock for a caller that need not wait, where the store answers at once.
    pub(crate) fn take(
        self: &Arc<Self>,
        key: &LockKey,
        settings: Settings,
        enclosing: Option<&Arc<Lease>>,
    ) -> Option<Arc<Lease>> {
        let store = self.store.memory()?;
        self.at_key(key, |_, place, scene, _| {
            place.take(scene, settings, enclosing, |question| store.ask(question))
        })
    }

    /// Waits for a lock.
    ///
    /// # Cancel safety
    /// Dropped at any point, the turn passes on, and what was asked for is given back.
    pub(crate) fn wait(self: &Arc<Self>, key: &LockKey, waiter: Waiter) -> InLine<'_> {
        let waiter = Arc::new(waiter);
        let (seat, contended) = self.at_key(key, |seat, place, scene, effects| {
            // Looked at under the lock of the place: a shutdown that comes later finds the waiter.
            if self.closed.load(Ordering::SeqCst) {
                effects.wake.extend(waiter.refuse(Refusal::ShutDown));
                return (Arc::clone(seat), false);
            }
            let contended = !place.is_idle();
            place.join(scene, &waiter, effects);
            (Arc::clone(seat), contended)
        });
        if contended {
            // Whether somebody else waits is told by push.
            self.store.attend();
        }
        InLine::new(self, seat, waiter)
    }

    /// A section has ended. `in_time` says that its lease had not ended before.
    pub(crate) fn end(self: &Arc<Self>, lease: &Arc<Lease>, in_time: bool) -> Ending {
        self.at(&self.seat_of(lease), |place, scene, effects| {
            place.end(scene, lease, in_time, effects);
            if !place.is_releasing() {
                return Ending::Over;
            }
            let Some(ended) = effects.release.take() else { return Ending::Over };
            match self.store.memory() {
                Some(store) => {
                    place.released(scene, &ended.token);
                    Ending::Released(store.release(&lease.key, &ended.token))
                }
                None => Ending::Release(ended),
            }
        })
    }

    /// Whether the end of a section needs no word to a server.
    pub(crate) fn ends_at_once(&self, lease: &Lease) -> bool {
        self.store.memory().is_some()
            || lease.seat.upgrade().is_some_and(|seat| seat.lock().place.is_waited_for())
    }

    /// The release of a lease has come to its end. False if the lock was passed on before.
    pub(crate) fn released(self: &Arc<Self>, lease: &Lease) -> bool {
        self.released_at(&self.seat_of(lease), &lease.owner)
    }

    fn released_at(self: &Arc<Self>, seat: &Arc<Seat>, token: &OwnerToken) -> bool {
        self.at(seat, |place, scene, _| place.released(scene, token))
    }

    /// A lease may have been lost: who waits for the key does not wait for the end of its section.
    pub(crate) fn lost(self: &Arc<Self>, lease: &Lease) {
        let seat = self.seat_of(lease);
        self.at(&seat, |place, scene, effects| place.go_on_after_loss(scene, effects));
    }

    /// The lease under which a section runs now, if it has the same token as this one.
    pub(crate) fn held_under(self: &Arc<Self>, lease: &Lease) -> Option<Arc<Lease>> {
        self.at(&self.seat_of(lease), |place, _, _| place.held_under(&lease.owner))
    }

    /// Releases without waiting, and tries again until the lease has run out.
    pub(crate) fn release_detached(self: &Arc<Self>, lease: &Lease, ended: Ended) {
        self.detach(self.seat_of(lease), ended);
    }

    /// The same from the caller's runtime, which saves the way to another thread. If that runtime
    /// ends or is blocked, the driver releases after all.
    pub(crate) fn release_nearby(self: &Arc<Self>, lease: &Lease, ended: Ended) {
        let Ok(runtime) = Handle::try_current() else {
            return self.release_detached(lease, ended);
        };
        let seat = self.seat_of(lease);
        let detached = Detached {
            seat: Arc::clone(&seat),
            ended: ended.clone(),
            _running: self.driver.running(),
        };
        let now = Moment::now();
        let slot = self.alarms.insert(now.after(NEARBY), Alarm::Release(Box::new(detached)));
        let give_up = now.after(self.attempt);
        let queues = Arc::clone(self);
        let release = async move {
            let key = &seat.key;
            match queues.store.release(key, &ended, give_up).await {
                Ok(released) => {
                    log::debug!(%key, ?released, "lock released in the background");
                    queues.released_at(&seat, &ended.token);
                    drop(queues.alarms.remove(slot));
                }
                // The alarm tries again.
                Err(error) => log::debug!(%key, %error, "lock not released yet"),
            }
        };
        // Hooks of the caller's runtime run in here.
        unharmed(|| drop(runtime.spawn(release)));
    }

    fn detach(self: &Arc<Self>, seat: Arc<Seat>, ended: Ended) {
        let queues = Arc::clone(self);
        self.driver.spawn(async move {
            queues.store.release_at_last(&seat.key, &ended).await;
            queues.released_at(&seat, &ended.token);
        });
    }

    /// Refuses all who wait, from now on.
    pub(crate) fn close(self: &Arc<Self>) {
        self.closed.store(true, Ordering::SeqCst);
        for seat in self.seats.all() {
            self.at(&seat, |place, scene, effects| place.close(scene, effects));
        }
    }

    /// Keeps the timers and reads the pushes, for ever. For the driver.
    pub(crate) async fn run(self: Arc<Self>, mut inbox: Option<Inbox>) {
        loop {
            let mut due = std::pin::pin!(self.alarms.due());
            // What waits for the next alarm goes on waiting while pushes are read.
            let alarms = std::future::poll_fn(|context| {
                while let Some(pushes) = &mut inbox
                    && let Poll::Ready(push) = pushes.poll_recv(context)
                {
                    match push {
                        // A waker that panics must not cost all waiters their timers.
                        Some(push) => unharmed(|| self.pushed(push)),
                        None => inbox = None,
                    }
                }
                due.as_mut().poll(context)
            });
            for alarm in alarms.await {
                unharmed(|| self.look(alarm));
            }
        }
    }

    fn look(self: &Arc<Self>, alarm: Alarm) {
        match alarm {
            Alarm::Look(seat) => self.at(&seat, |place, scene, effects| {
                place.look(scene, effects);
            }),
            Alarm::Release(detached) => {
                let Detached { seat, ended, _running } = *detached;
                self.detach(seat, ended);
            }
        }
    }

    fn pushed(self: &Arc<Self>, push: Push) {
        match push {
            Push::Grant { key, token } => {
                if let Some(token) = self.owners.read(&token) {
                    self.at_key(&key, |_, place, scene, effects| {
                        place.granted(scene, token, effects)
                    });
                }
            }
            Push::Demand { key, token } => {
                if let Some(token) = self.owners.read(&token) {
                    self.at_key(&key, |_, place, scene, effects| {
                        place.demanded(scene, token, effects)
                    });
                }
            }
            Push::Soon { key, token } => {
                if let Some(token) = self.owners.read(&token) {
                    self.at_key(&key, |_, place, scene, effects| {
                        place.left_free(scene, token, effects)
                    });
                }
            }
            Push::Missed => {
                for seat in self.seats.all() {
                    self.at(&seat, |place, scene, _| place.missed_pushes(scene));
                }
            }
        }
    }

    fn answered(
        self: &Arc<Self>,
        seat: &Arc<Seat>,
        token: &OwnerToken,
        answer: Result<Reply, Failed>,
    ) {
        self.at(seat, |place, scene, effects| place.answered(scene, token, answer, effects));
    }

    /// The seat of the key that a lease is for.
    fn seat_of(&self, lease: &Lease) -> Arc<Seat> {
        lease.seat.upgrade().unwrap_or_else(|| self.seats.of(&lease.key))
    }

    /// Lets something happen to the place of a key that may have none yet.
    fn at_key<R>(
        self: &Arc<Self>,
        key: &LockKey,
        event: impl FnOnce(&Arc<Seat>, &mut Place, &Scene<'_>, &mut Effects) -> R,
    ) -> R {
        loop {
            let seat = self.seats.of(key);
            let seated = seat.lock();
            if !seat.is_gone() {
                return self.happens(&seat, seated, |place, scene, effects| {
                    event(&seat, place, scene, effects)
                });
            }
        }
    }

    /// Lets something happen to a place. If its seat is gone, it is idle and stays so.
    fn at<R>(
        self: &Arc<Self>,
        seat: &Arc<Seat>,
        event: impl FnOnce(&mut Place, &Scene<'_>, &mut Effects) -> R,
    ) -> R {
        self.happens(seat, seat.lock(), event)
    }

    /// Carries out what follows from an event as well.
    fn happens<R>(
        self: &Arc<Self>,
        seat: &Arc<Seat>,
        mut seated: MutexGuard<'_, Seated>,
        event: impl FnOnce(&mut Place, &Scene<'_>, &mut Effects) -> R,
    ) -> R {
        let mut effects = Effects::default();
        // Read inside of the lock, so that the events of a place are in the order of their times.
        let now = Moment::now();
        let scene = Scene {
            key: &seat.key,
            seat: Some(seat),
            manager: self.manager,
            owners: &self.owners,
            attempt: self.attempt,
            told: self.store.tells(),
            now,
        };
        let Seated { place, alarm } = &mut *seated;
        // One that is due has gone off, or need not any more.
        if let Some(slot) = alarm.take_if(|slot| slot.0 <= now) {
            drop(self.alarms.remove(slot));
        }
        let result = event(place, &scene, &mut effects);
        if let Some(store) = self.store.memory() {
            answer_at_once(store, place, &scene, &mut effects);
        }
        if let Some(asker) = effects.asker.take()
            && let Some(question) = effects.ask.take()
        {
            let (token, runtime) = (question.token.clone(), Handle::try_current().ok());
            let asked = self.ask(seat, question, runtime.clone());
            asker.ask_by_itself(Errand { token, asked, runtime });
        }
        self.set_alarm(alarm, place.due(&scene), effects.postponed, seat);
        let leaves = place.is_idle() && seat.go();
        drop(seated);
        if leaves {
            self.seats.remove(seat);
        }
        self.carry_out(seat, effects);
        result
    }

    /// An alarm that is earlier than needed is left alone, unless the place says that it has postponed
    /// what is due: when it goes off, the place is looked at, and it is set anew.
    fn set_alarm(
        &self,
        alarm: &mut Option<Slot>,
        due: Option<Moment>,
        postponed: bool,
        seat: &Arc<Seat>,
    ) {
        if let (Some(due), Some(slot), false) = (due, &alarm, postponed)
            && slot.0 <= due
        {
            return;
        }
        if let Some(slot) = alarm.take() {
            drop(self.alarms.remove(slot));
        }
        *alarm = due.map(|due| self.alarms.insert(due, Alarm::Look(Arc::clone(seat))));
    }

    fn carry_out(self: &Arc<Self>, seat: &Arc<Seat>, effects: Effects) {
        let Effects { ask, take_over, cancel, release, wake, handed_over, .. } = effects;
        if handed_over {
            self.handed_over.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(question) = ask {
            let (queues, seat) = (Arc::clone(self), Arc::clone(seat));
            let token = question.token.clone();
            let asked = self.ask(&seat, question, None);
            self.driver.spawn(async move { queues.answered(&seat, &token, asked.await) });
        }
        if let Some(TakeOver { waiter, token, patience }) = take_over
            && let Some(errand) = waiter.take_over()
        {
            self.drive(seat, token, errand, patience);
            // It keeps its own time from now on.
            wake_all(waiter.take_waker());
        }
        if let Some(waiter) = cancel {
            drop(waiter.take_over());
        }
        if let Some(ended) = release {
            self.detach(Arc::clone(seat), ended);
        }
        wake_all(wake);
    }

    fn ask(
        self: &Arc<Self>,
        seat: &Arc<Seat>,
        question: Question,
        runtime: Option<Handle>,
    ) -> Asked {
        let queues = Arc::clone(self);
        let (seat, token) = (Arc::clone(seat), question.token.clone());
        let progress = {
            let queues = Arc::clone(self);
            move |progress| {
                queues.at(&seat, |place, scene, effects| match progress {
                    Progress::Delayed => place.delayed(&token, effects),
                    Progress::Sent => place.sent(scene, &token),
                });
            }
        };
        Box::pin(async move { queues.store.ask(&question, runtime.as_ref(), &progress).await })
    }

    /// Has the driver wait for the answer to a question, unless the connection that it went over
    /// brings no answer within `patience`.
    fn drive(
        self: &Arc<Self>,
        seat: &Arc<Seat>,
        token: OwnerToken,
        errand: Errand,
        patience: Duration,
    ) {
        let (queues, seat) = (Arc::clone(self), Arc::clone(seat));
        self.driver.spawn(async move {
            let Errand { mut asked, runtime, .. } = errand;
            let stalled = async {
                match &runtime {
                    Some(runtime) => queues.store.stalled(runtime, patience).await,
                    None => std::future::pending().await,
                }
            };
            let mut stalled = std::pin::pin!(stalled);
            let answer = std::future::poll_fn(|context| {
                if let Poll::Ready(answer) = asked.as_mut().poll(context) {
                    return Poll::Ready(answer);
                }
                stalled.as_mut().poll(context).map(|()| {
                    let message = "the server did not answer";
                    let error = BackendError::new(BackendErrorKind::Timeout, message);
                    Err(Failed { error, fate: Fate::Abandoned })
                })
            });
            let answer = answer.await;
            // What is not answered is taken back before anything else is asked.
            drop(asked);
            queues.answered(&seat, &token, answer);
        });
    }
}

/// The store in memory has its answers at once.
fn answer_at_once(
    store: &MemoryStore,
    place: &mut Place,
    scene: &Scene<'_>,
    effects: &mut Effects,
) {
    loop {
        if let Some(question) = effects.ask.take() {
            effects.asker = None;
            let answer = Ok(store.ask(&question));
            place.answered(scene, &question.token, answer, effects);
        } else if let Some(ended) = effects.release.take() {
            store.release(scene.key, &ended.token);
            place.released(scene, &ended.token);
        } else {
            return;
        }
    }
}

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queues").field("keys", &self.len()).finish_non_exhaustive()
    }
}
