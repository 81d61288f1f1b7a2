//! Local waiters: for each key that callers of this manager hold or wait for, one place.
//!
//! Of all who wait for a key, one at most talks to the server, and a lock that is released goes to
//! the next without any command, within bounds. What happens is decided in `place.rs`; here it is
//! carried out: questions are sent, tokens released, timers kept, pushes read.

use std::{
    collections::{HashMap, hash_map},
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::runtime::Handle;

pub(crate) use self::waiter::{Outcome, Refusal, Waiter};
use self::{
    place::{Effects, Place, Scene, TakeOver},
    waiter::{Asked, Errand},
};
use crate::{
    agenda::{Agenda, Slot},
    clock::Moment,
    driver::{Driver, Running, Sleep, unharmed},
    error::{BackendError, BackendErrorKind},
    key::LockKey,
    lease::Lease,
    log,
    options::Settings,
    owner::{OwnerToken, Owners},
    signal::wake_all,
    store::{
        Ended, Failed, Fate, Inbox, Progress, Push, Question, Released, Reply, Store,
        memory::MemoryStore,
    },
};

mod cohort;
mod place;
#[cfg(all(test, feature = "redis"))]
mod replay;
mod waiter;

/// A map with room for so many more than it holds is made smaller.
const ROOM: usize = 1024;

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
    places: Mutex<HashMap<LockKey, Entry>>,
    alarms: Agenda<Alarm>,
    /// How often a section was followed by the next one without a question.
    handed_over: AtomicU64,
    closed: AtomicBool,
}

struct Entry {
    place: Place,
    /// The alarm that is set for it.
    alarm: Option<Slot>,
}

enum Alarm {
    /// A place has to be looked at.
    Look(LockKey),
    /// The runtime that releases has not done so in time.
    Release(Detached),
}

/// A release that nobody waits for.
struct Detached {
    key: LockKey,
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
    Released(Released),
}

impl Queues {
    pub(crate) fn new(
        manager: u64,
        store: Store,
        driver: Arc<Driver>,
        owners: Arc<Owners>,
        attempt: Duration,
    ) -> Self {
        let (places, alarms) = (Mutex::default(), Agenda::precise());
        let (handed_over, closed) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { manager, store, driver, owners, attempt, places, alarms, handed_over, closed }
    }

    pub(crate) fn handed_over(&self) -> u64 {
        self.handed_over.load(Ordering::Relaxed)
    }

    /// The number of keys that are held or waited for, or whose release is on its way.
    pub(crate) fn len(&self) -> usize {
        self.places().len()
    }

    /// Takes a lock for a caller that need not wait, where the store answers at once.
    pub(crate) fn take(
        self: &Arc<Self>,
        key: &LockKey,
        settings: Settings,
        enclosing: Option<&Arc<Lease>>,
    ) -> Option<Arc<Lease>> {
        let store = self.store.memory()?;
        self.at(key, |place, scene, _| {
            place.take(scene, settings, enclosing, |question| store.ask(question))
        })
    }

    /// Waits for a lock.
    ///
    /// # Cancel safety
    /// Dropped at any point, the turn passes on, and what was asked for is given back.
    pub(crate) fn wait(self: &Arc<Self>, key: LockKey, waiter: Waiter) -> InLine<'_> {
        let waiter = Arc::new(waiter);
        let contended = self.at(&key, |place, scene, effects| {
            // Looked at under the lock of the places: a shutdown that comes later finds the waiter.
            if self.closed.load(Ordering::SeqCst) {
                effects.wake.extend(waiter.refuse(Refusal::ShutDown));
                return false;
            }
            let contended = !place.is_idle();
            place.join(scene, &waiter, effects);
            contended
        });
        if contended {
            // Whether somebody else waits is told by push.
            self.store.attend();
        }
        InLine { queues: self, key, waiter: Some(waiter), sleep: None }
    }

    /// A section has ended. `in_time` says that its lease had not ended before.
    pub(crate) fn end(self: &Arc<Self>, lease: &Arc<Lease>, in_time: bool) -> Ending {
        self.at(&lease.key, |place, scene, effects| {
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
            || self.places().get(&lease.key).is_some_and(|entry| entry.place.is_waited_for())
    }

    /// The release of a lease has come to its end. False if the lock was passed on before.
    pub(crate) fn released(self: &Arc<Self>, key: &LockKey, token: &OwnerToken) -> bool {
        self.at(key, |place, scene, _| place.released(scene, token))
    }

    /// A lease may have been lost: who waits for the key does not wait for the end of its section.
    pub(crate) fn lost(self: &Arc<Self>, lease: &Lease) {
        self.at(&lease.key, |place, scene, effects| place.go_on_after_loss(scene, effects));
    }

    /// The lease under which a section runs now, if it is one of this token.
    pub(crate) fn held_under(
        self: &Arc<Self>,
        key: &LockKey,
        token: &OwnerToken,
    ) -> Option<Arc<Lease>> {
        self.at(key, |place, _, _| place.held_under(token))
    }

    /// Releases without waiting, and tries again until the lease has run out.
    pub(crate) fn release_detached(self: &Arc<Self>, lease: &Lease, ended: Ended) {
        self.detach(lease.key.clone(), ended);
    }

    /// The same from the caller's runtime, which saves the way to another thread. If that runtime
    /// ends or is blocked, the driver releases after all.
    pub(crate) fn release_nearby(self: &Arc<Self>, lease: &Lease, ended: Ended) {
        let Ok(runtime) = Handle::try_current() else {
            return self.release_detached(lease, ended);
        };
        let detached = Detached {
            key: lease.key.clone(),
            ended: ended.clone(),
            _running: self.driver.running(),
        };
        let now = Moment::now();
        let slot = self.alarms.insert(now.after(NEARBY), Alarm::Release(detached));
        let give_up = now.after(self.attempt);
        let (queues, key) = (Arc::clone(self), lease.key.clone());
        let release = async move {
            match queues.store.release(&key, &ended, give_up).await {
                Ok(released) => {
                    log::debug!(%key, ?released, "lock released in the background");
                    queues.released(&key, &ended.token);
                    drop(queues.alarms.remove(slot));
                }
                // The alarm tries again.
                Err(error) => log::debug!(%key, %error, "lock not released yet"),
            }
        };
        // Hooks of the caller's runtime run in here.
        unharmed(|| drop(runtime.spawn(release)));
    }

    fn detach(self: &Arc<Self>, key: LockKey, ended: Ended) {
        let queues = Arc::clone(self);
        self.driver.spawn(async move {
            queues.store.release_at_last(&key, &ended).await;
            queues.released(&key, &ended.token);
        });
    }

    /// Refuses all who wait, from now on.
    pub(crate) fn close(self: &Arc<Self>) {
        self.closed.store(true, Ordering::SeqCst);
        let keys: Vec<_> = self.places().keys().cloned().collect();
        for key in keys {
            self.at(&key, |place, scene, effects| place.close(scene, effects));
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
            Alarm::Look(key) => self.at(&key, |place, scene, effects| {
                place.look(scene, effects);
            }),
            Alarm::Release(Detached { key, ended, _running }) => self.detach(key, ended),
        }
    }

    fn pushed(self: &Arc<Self>, push: Push) {
        match push {
            Push::Grant { key, token } => {
                if let Some(token) = self.owners.read(&token) {
                    self.at(&key, |place, scene, effects| place.granted(scene, token, effects));
                }
            }
            Push::Demand { key, token } => {
                if let Some(token) = self.owners.read(&token) {
                    self.at(&key, |place, scene, effects| place.demanded(scene, token, effects));
                }
            }
            Push::Soon { key, token } => {
                if let Some(token) = self.owners.read(&token) {
                    self.at(&key, |place, scene, effects| place.left_free(scene, token, effects));
                }
            }
            Push::Missed => {
                let keys: Vec<_> = self.places().keys().cloned().collect();
                for key in keys {
                    self.at(&key, |place, scene, _| place.missed_pushes(scene));
                }
            }
        }
    }

    fn answered(
        self: &Arc<Self>,
        key: &LockKey,
        token: &OwnerToken,
        answer: Result<Reply, Failed>,
    ) {
        self.at(key, |place, scene, effects| place.answered(scene, token, answer, effects));
    }

    /// Lets something happen to the place of a key, and carries out what follows from it.
    fn at<R>(
        self: &Arc<Self>,
        key: &LockKey,
        event: impl FnOnce(&mut Place, &Scene<'_>, &mut Effects) -> R,
    ) -> R {
        let mut effects = Effects::default();
        let mut places = self.places();
        // Read inside of the lock, so that the events of a place are in the order of their times.
        let now = Moment::now();
        let scene = Scene {
            key,
            manager: self.manager,
            owners: &self.owners,
            attempt: self.attempt,
            told: self.store.tells(),
            now,
        };
        let mut entry = match places.entry(key.clone()) {
            hash_map::Entry::Occupied(entry) => entry,
            hash_map::Entry::Vacant(entry) => {
                let place = Place::new(self.manager ^ now.as_nanos());
                entry.insert_entry(Entry { place, alarm: None })
            }
        };
        let Entry { place, alarm } = entry.get_mut();
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
            let asked = self.ask(question, runtime.clone());
            asker.ask_by_itself(Errand { token, asked, runtime });
        }
        self.set_alarm(alarm, place.due(&scene), key);
        if place.is_idle() {
            if let Some(slot) = alarm.take() {
                drop(self.alarms.remove(slot));
            }
            entry.remove();
            if places.capacity() > ROOM && places.capacity() / 8 > places.len() {
                let room = places.len() * 2;
                places.shrink_to(room);
            }
        }
        drop(places);
        self.carry_out(key, effects);
        result
    }

    /// An alarm that is earlier than needed is left alone: when it goes off, the place is looked
    /// at, and it is set anew.
    fn set_alarm(&self, alarm: &mut Option<Slot>, due: Option<Moment>, key: &LockKey) {
        match (due, *alarm) {
            (Some(due), Some(slot)) if slot.0 <= due => {}
            (Some(due), _) => {
                if let Some(slot) = alarm.take() {
                    drop(self.alarms.remove(slot));
                }
                *alarm = Some(self.alarms.insert(due, Alarm::Look(key.clone())));
            }
            (None, _) => {}
        }
    }

    fn carry_out(self: &Arc<Self>, key: &LockKey, effects: Effects) {
        let Effects { ask, asker: _, take_over, cancel, release, wake, handed_over } = effects;
        if handed_over {
            self.handed_over.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(question) = ask {
            let (queues, key, token) = (Arc::clone(self), key.clone(), question.token.clone());
            let asked = self.ask(question, None);
            self.driver.spawn(async move { queues.answered(&key, &token, asked.await) });
        }
        if let Some(TakeOver { waiter, token, patience }) = take_over
            && let Some(errand) = waiter.take_over()
        {
            self.drive(key, token, errand, patience);
            // It keeps its own time from now on.
            wake_all(waiter.take_waker());
        }
        if let Some(waiter) = cancel {
            drop(waiter.take_over());
        }
        if let Some(ended) = release {
            self.detach(key.clone(), ended);
        }
        wake_all(wake);
    }

    fn ask(self: &Arc<Self>, question: Question, runtime: Option<Handle>) -> Asked {
        let queues = Arc::clone(self);
        let (key, token) = (question.key.clone(), question.token.clone());
        let progress = {
            let queues = Arc::clone(self);
            move |progress| {
                queues.at(&key, |place, scene, _| match progress {
                    Progress::Delayed => place.delayed(&token),
                    Progress::Sent => place.sent(scene, &token),
                });
            }
        };
        Box::pin(async move { queues.store.ask(question, runtime, progress).await })
    }

    /// Has the driver wait for the answer to a question, unless the connection that it went over
    /// brings no answer within `patience`.
    fn drive(
        self: &Arc<Self>,
        key: &LockKey,
        token: OwnerToken,
        errand: Errand,
        patience: Duration,
    ) {
        let (queues, key) = (Arc::clone(self), key.clone());
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
            queues.answered(&key, &token, answer);
        });
    }

    fn places(&self) -> MutexGuard<'_, HashMap<LockKey, Entry>> {
        // Each place is whole between any two events, and no event runs code of a user.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
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

/// A wait for a lock.
#[must_use]
pub(crate) struct InLine<'a> {
    queues: &'a Arc<Queues>,
    key: LockKey,
    /// Until the outcome is known.
    waiter: Option<Arc<Waiter>>,
    sleep: Option<(Sleep<'a>, Moment)>,
}

impl Future for InLine<'_> {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let Self { queues, key, waiter, sleep } = self.get_mut();
        let Some(waiting) = waiter.as_ref() else { return Poll::Ready(Outcome::Missed) };
        let asks = match waiting.poll_question(context) {
            Some(Poll::Ready((token, answer))) => {
                queues.answered(key, &token, answer);
                false
            }
            Some(Poll::Pending) => true,
            None => false,
        };
        let outcome = match waiting.poll_outcome(context) {
            Poll::Ready(outcome) => outcome,
            // Whoever takes its question over wakes it, but not before it has left its waker.
            Poll::Pending if asks && waiting.asks_by_itself() => return Poll::Pending,
            Poll::Pending => match poll_patience(queues, key, waiting, sleep, context) {
                // It may have been handed the lock since it was looked at last. It is in no line any
                // more, so nothing comes after this look.
                Poll::Ready(refusal) => match waiting.poll_outcome(context) {
                    Poll::Ready(outcome) => outcome,
                    Poll::Pending => Outcome::Refused(refusal),
                },
                Poll::Pending => return Poll::Pending,
            },
        };
        *waiter = None;
        Poll::Ready(outcome)
    }
}

/// Ready when the waiter's time is over.
fn poll_patience<'a>(
    queues: &'a Arc<Queues>,
    key: &LockKey,
    waiter: &Arc<Waiter>,
    sleep: &mut Option<(Sleep<'a>, Moment)>,
    context: &mut Context<'_>,
) -> Poll<Refusal> {
    loop {
        let now = Moment::now();
        let due = if now < waiter.patience { waiter.patience } else { waiter.end };
        if now >= waiter.patience {
            let given_up =
                queues.at(key, |place, scene, effects| place.give_up(scene, waiter, effects));
            if let Some(refusal) = given_up {
                return Poll::Ready(refusal);
            }
        }
        let (timer, _) = match sleep {
            Some(sleep) if sleep.1 == due => sleep,
            _ => sleep.insert((queues.driver.sleep_until(due), due)),
        };
        if Pin::new(timer).poll(context).is_pending() {
            return Poll::Pending;
        }
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            // Dropped before the lock of all keys is taken, and whatever its drop does: that is code of
            // the caller's.
            unharmed(|| drop(waiter.take_waker()));
            self.queues.at(&self.key, |place, scene, effects| place.leave(scene, &waiter, effects));
        }
    }
}

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queues").field("keys", &self.len()).finish_non_exhaustive()
    }
}
