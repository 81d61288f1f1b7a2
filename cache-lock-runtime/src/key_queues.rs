//! The keys that callers of a manager hold or wait for, and what carries out the protocol's effects:
//! requests are sent, tokens released, timers kept, pushes read.
//!
//! Of all callers that wait for a key, one at most asks the server, and a lock that is released goes to the
//! next of them without any command, within bounds. [`protocol`](crate::protocol) decides.

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

use self::key_map::{EntryState, KeyMap};
pub(crate) use self::{
    acquire::{Acquire, AcquireOutcome},
    key_map::KeyEntry,
};
use crate::{
    clock::Instant,
    driver::{Driver, Running},
    error::{BackendError, BackendErrorKind},
    key::LockKey,
    lease::Lease,
    log,
    owner::{OwnerToken, TokenSource},
    protocol::{
        effects::{Effects, Env, TakeOver},
        machine::Machine,
        messages::{
            AcquireError, AcquireRequest, Fate, Inbox, Progress, Push, ReleaseOutcome,
            ReleaseRequest,
        },
        waiter::{DirectRequest, Refusal, ResponseFuture, Waiter},
    },
    signal::wake_all,
    store::Store,
    timer_queue::{TimerId, TimerQueue},
    unharmed::unharmed,
};

mod acquire;
mod key_map;

/// A release that the caller's runtime has not finished within this time is the driver's.
const NEARBY: Duration = Duration::from_millis(100);

/// The queues of all keys of a manager.
pub(crate) struct KeyQueues {
    /// The manager's number.
    manager: u64,
    store: Store,
    driver: Arc<Driver>,
    tokens: Arc<TokenSource>,
    /// The longest time that one request may take.
    attempt: Duration,
    keys: KeyMap,
    timers: TimerQueue<Timer>,
    /// How often a section was followed by the next one without a request.
    handed_over: AtomicU64,
    closed: AtomicBool,
}

enum Timer {
    /// A key has something due.
    Key(Arc<KeyEntry>),
    /// The runtime that releases has not done so in time.
    Release(Box<NearbyRelease>),
}

/// A release that no caller waits for.
struct NearbyRelease {
    entry: Arc<KeyEntry>,
    request: ReleaseRequest,
    _running: Running,
}

/// A lock that a caller has acquired.
#[derive(Clone, Debug)]
pub(crate) struct Acquired {
    pub(crate) lease: Arc<Lease>,
    pub(crate) entry: Arc<KeyEntry>,
}

/// What comes of the end of a section.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The lock is the next caller's, or asked for on its behalf, or was lost before.
    Over,
    /// The server has to be told.
    Release(ReleaseRequest),
    /// The store has been told.
    Released(ReleaseOutcome),
}

impl KeyQueues {
    pub(crate) fn new(
        manager: u64,
        store: Store,
        driver: Arc<Driver>,
        tokens: Arc<TokenSource>,
        attempt: Duration,
    ) -> Self {
        let (keys, timers) = (KeyMap::default(), TimerQueue::precise());
        let (handed_over, closed) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { manager, store, driver, tokens, attempt, keys, timers, handed_over, closed }
    }

    pub(crate) fn handed_over(&self) -> u64 {
        self.handed_over.load(Ordering::Relaxed)
    }

    /// The number of keys that are held or waited for, or whose release is on its way.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Waits for a lock.
    ///
    /// # Cancel safety
    /// Dropped at any point, the turn passes on, and what was asked for is given back.
    pub(crate) fn acquire(self: &Arc<Self>, key: &LockKey, waiter: Waiter) -> Acquire<'_> {
        let waiter = Arc::new(waiter);
        let (entry, contended) = self.at_key(key, |entry, machine| {
            // Looked at under the lock of the key: a shutdown that comes later finds the waiter.
            if self.closed.load(Ordering::SeqCst) {
                machine.effects.wake.extend(waiter.refuse(Refusal::ShutDown));
                return (Arc::clone(entry), false);
            }
            let contended = !machine.queue.is_idle();
            machine.join(&waiter);
            // The caller runs, so it takes at once what it has at once.
            self.answer_now(machine);
            machine.polled(&waiter);
            (Arc::clone(entry), contended)
        });
        if contended {
            // A push tells whether other managers wait.
            self.store.attend();
        }
        Acquire::new(self, entry, waiter)
    }

    /// A section has ended. `in_time`: its lease had not ended before.
    pub(crate) fn end(self: &Arc<Self>, acquired: &Acquired, in_time: bool) -> Ending {
        let Acquired { lease, entry } = acquired;
        self.at(entry, |machine| {
            machine.end(lease, in_time);
            if !machine.queue.is_releasing() {
                return Ending::Over;
            }
            let Some(request) = machine.effects.release.take() else { return Ending::Over };
            match self.store.release_now(&lease.key, &request) {
                Some(outcome) => {
                    machine.released(&request.token);
                    Ending::Released(outcome)
                }
                None => Ending::Release(request),
            }
        })
    }

    /// Whether the end of a section needs no word to a server.
    pub(crate) fn ends_at_once(&self, acquired: &Acquired) -> bool {
        self.store.answers_at_once() || acquired.entry.lock().queue.has_waiters()
    }

    /// A release was answered. False if the lock was passed on before.
    pub(crate) fn released(self: &Arc<Self>, acquired: &Acquired) -> bool {
        self.at(&acquired.entry, |machine| machine.released(&acquired.lease.owner))
    }

    /// The lease of a section may have been lost. The waiters do not wait for the end of the section.
    pub(crate) fn lost(self: &Arc<Self>, lease: &Lease) {
        if let Some(entry) = self.keys.get(&lease.key) {
            self.at(&entry, |machine| machine.go_on_after_loss());
        }
    }

    /// The lease of the section that runs now, if it has the same token as this one.
    pub(crate) fn held_under(&self, lease: &Lease) -> Option<Arc<Lease>> {
        self.keys.get(&lease.key)?.lock().queue.held_under(&lease.owner)
    }

    /// Ends the section of a lease whose holder has not let go of it, and releases without waiting.
    pub(crate) fn take_away(self: &Arc<Self>, lease: &Arc<Lease>, in_time: bool) {
        if let Some(entry) = self.keys.get(&lease.key) {
            self.give_back(&Acquired { lease: Arc::clone(lease), entry }, in_time);
        }
    }

    /// Ends a section, and releases without waiting.
    pub(crate) fn give_back(self: &Arc<Self>, acquired: &Acquired, in_time: bool) {
        if let Ending::Release(request) = self.end(acquired, in_time) {
            self.release_detached(acquired, request);
        }
    }

    /// Releases without waiting, and tries again until the lease has run out.
    pub(crate) fn release_detached(self: &Arc<Self>, acquired: &Acquired, request: ReleaseRequest) {
        self.detach(Arc::clone(&acquired.entry), request);
    }

    /// The same from the caller's runtime, which saves the hop to another thread. If that runtime
    /// ends or is blocked, the driver releases after all.
    pub(crate) fn release_nearby(self: &Arc<Self>, acquired: &Acquired, request: ReleaseRequest) {
        let Ok(runtime) = Handle::try_current() else {
            return self.release_detached(acquired, request);
        };
        let entry = Arc::clone(&acquired.entry);
        let nearby = NearbyRelease {
            entry: Arc::clone(&entry),
            request: request.clone(),
            _running: self.driver.running(),
        };
        let now = Instant::now();
        let timer = self.timers.insert(now + NEARBY, Timer::Release(Box::new(nearby)));
        let give_up = now + self.attempt;
        let queues = Arc::clone(self);
        let release = async move {
            let key = &entry.key;
            match queues.store.release(key, &request, give_up).await {
                Ok(released) => {
                    log::debug!(%key, ?released, "lock released in the background");
                    queues.at(&entry, |machine| machine.released(&request.token));
                    drop(queues.timers.remove(timer));
                }
                // The timer tries again.
                Err(error) => log::debug!(%key, %error, "lock not released yet"),
            }
        };
        // Hooks of the caller's runtime run in here.
        unharmed(|| drop(runtime.spawn(release)));
    }

    fn detach(self: &Arc<Self>, entry: Arc<KeyEntry>, request: ReleaseRequest) {
        let queues = Arc::clone(self);
        self.driver.spawn(async move {
            queues.store.release_at_last(&entry.key, &request).await;
            queues.at(&entry, |machine| machine.released(&request.token));
        });
    }

    /// Refuses all waiters, from now on.
    pub(crate) fn close(self: &Arc<Self>) {
        self.closed.store(true, Ordering::SeqCst);
        for entry in self.keys.all() {
            self.at(&entry, |machine| machine.close());
        }
    }

    /// Keeps the timers and reads the pushes, for ever. For the driver.
    pub(crate) async fn run(self: Arc<Self>, mut inbox: Option<Inbox>) {
        loop {
            let mut due = std::pin::pin!(self.timers.due());
            // The wait for the next timer goes on while pushes are read.
            let timers = std::future::poll_fn(|context| {
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
            for timer in timers.await {
                unharmed(|| self.on_timer(timer));
            }
        }
    }

    fn on_timer(self: &Arc<Self>, timer: Timer) {
        match timer {
            Timer::Key(entry) => self.at(&entry, |machine| machine.on_timer()),
            Timer::Release(nearby) => {
                let NearbyRelease { entry, request, _running } = *nearby;
                self.detach(entry, request);
            }
        }
    }

    fn pushed(self: &Arc<Self>, push: Push) {
        match push {
            Push::Grant { key, token } => {
                self.at_token(&key, &token, |machine, token| machine.granted(token));
            }
            Push::Demand { key, token } => {
                self.at_token(&key, &token, |machine, token| machine.demanded(token));
            }
            Push::Yielded { key, token } => {
                self.at_token(&key, &token, |machine, token| machine.yielded(token));
            }
            Push::Missed => {
                for entry in self.keys.all() {
                    self.at(&entry, |machine| machine.missed_pushes());
                }
            }
        }
    }

    /// An event about a token of this manager.
    fn at_token(
        self: &Arc<Self>,
        key: &LockKey,
        token: &str,
        event: impl FnOnce(&mut Machine<'_>, OwnerToken),
    ) {
        if let Some(token) = self.tokens.read(token) {
            self.at_key(key, |_, machine| event(machine, token));
        }
    }

    /// An event of a key that may have no entry yet.
    fn at_key<R>(
        self: &Arc<Self>,
        key: &LockKey,
        event: impl FnOnce(&Arc<KeyEntry>, &mut Machine<'_>) -> R,
    ) -> R {
        loop {
            let entry = self.keys.get_or_insert(key);
            let state = entry.lock();
            if !entry.is_gone() {
                return self.happens(&entry, state, |machine| event(&entry, machine));
            }
        }
    }

    /// An event of a key. If its entry is gone, it is idle and stays so.
    fn at<R>(
        self: &Arc<Self>,
        entry: &Arc<KeyEntry>,
        event: impl FnOnce(&mut Machine<'_>) -> R,
    ) -> R {
        self.happens(entry, entry.lock(), event)
    }

    /// An event, and what follows from it.
    fn happens<R>(
        self: &Arc<Self>,
        entry: &Arc<KeyEntry>,
        mut state: MutexGuard<'_, EntryState>,
        event: impl FnOnce(&mut Machine<'_>) -> R,
    ) -> R {
        let mut effects = Effects::default();
        // Read inside of the lock, so that the events of a key are in the order of their times.
        let now = Instant::now();
        let env = Env {
            key: &entry.key,
            manager: self.manager,
            tokens: &self.tokens,
            attempt: self.attempt,
            told: self.store.tells(),
            now,
        };
        let EntryState { queue, timer } = &mut *state;
        // A timer that is due has gone off, or need not any more.
        if let Some(timer) = timer.take_if(|timer| timer.0 <= now) {
            drop(self.timers.remove(timer));
        }
        let mut machine = Machine { queue, env: &env, effects: &mut effects };
        let result = event(&mut machine);
        self.answer_now(&mut machine);
        let due = machine.due();
        let leaves = machine.queue.is_idle() && entry.go();
        if let Some(asker) = effects.asker.take()
            && let Some(request) = effects.acquire.take()
        {
            let (token, runtime) = (request.token.clone(), Handle::try_current().ok());
            let answer = self.send(entry, request, runtime.clone());
            asker.ask_directly(DirectRequest { token, answer, runtime });
        }
        self.set_timer(timer, due, effects.postponed, entry);
        drop(state);
        if leaves {
            self.keys.remove(entry);
        }
        self.carry_out(entry, effects);
        result
    }

    /// Tells the machine what the store answers at once.
    fn answer_now(&self, machine: &mut Machine<'_>) {
        while let Some(request) = &machine.effects.acquire
            && let Some(response) = self.store.acquire_now(request)
        {
            let token = request.token.clone();
            (machine.effects.acquire, machine.effects.asker) = (None, None);
            machine.answered(&token, Ok(response));
        }
        if let Some(request) = &machine.effects.release
            && self.store.release_now(machine.env.key, request).is_some()
        {
            let token = request.token.clone();
            machine.effects.release = None;
            machine.released(&token);
        }
    }

    /// A timer that is earlier than needed stays, unless the machine has postponed what is due: when it goes
    /// off, it is set anew.
    fn set_timer(
        &self,
        timer: &mut Option<TimerId>,
        due: Option<Instant>,
        postponed: bool,
        entry: &Arc<KeyEntry>,
    ) {
        if let (Some(due), Some(timer), false) = (due, &timer, postponed)
            && timer.0 <= due
        {
            return;
        }
        if let Some(timer) = timer.take() {
            drop(self.timers.remove(timer));
        }
        *timer = due.map(|due| self.timers.insert(due, Timer::Key(Arc::clone(entry))));
    }

    fn carry_out(self: &Arc<Self>, entry: &Arc<KeyEntry>, effects: Effects) {
        let Effects { acquire, take_over, cancel, release, wake, handed_over, .. } = effects;
        if handed_over {
            self.handed_over.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(request) = acquire {
            let (queues, entry) = (Arc::clone(self), Arc::clone(entry));
            let token = request.token.clone();
            let answer = self.send(&entry, request, None);
            self.driver.spawn(async move {
                let answer = answer.await;
                queues.at(&entry, |machine| machine.answered(&token, answer));
            });
        }
        if let Some(take_over) = take_over
            && let Some(request) = take_over.waiter.take_over()
        {
            let waiter = Arc::clone(&take_over.waiter);
            self.drive(entry, take_over, request);
            // It keeps its own time from now on.
            wake_all(waiter.take_waker());
        }
        if let Some(waiter) = cancel {
            drop(waiter.take_over());
        }
        if let Some(request) = release {
            self.detach(Arc::clone(entry), request);
        }
        wake_all(wake);
    }

    fn send(
        self: &Arc<Self>,
        entry: &Arc<KeyEntry>,
        request: AcquireRequest,
        runtime: Option<Handle>,
    ) -> ResponseFuture {
        let queues = Arc::clone(self);
        let (entry, token) = (Arc::clone(entry), request.token.clone());
        let progress = {
            let queues = Arc::clone(self);
            move |progress| {
                queues.at(&entry, |machine| match progress {
                    Progress::Delayed => machine.delayed(&token),
                    Progress::Sent => machine.sent(&token),
                });
            }
        };
        Box::pin(async move { queues.store.acquire(&request, runtime.as_ref(), &progress).await })
    }

    /// Has the driver wait for the answer to a request, unless the connection that it went over
    /// brings no answer within the patience.
    fn drive(self: &Arc<Self>, entry: &Arc<KeyEntry>, over: TakeOver, request: DirectRequest) {
        let (queues, entry) = (Arc::clone(self), Arc::clone(entry));
        self.driver.spawn(async move {
            let TakeOver { token, patience, .. } = over;
            let DirectRequest { mut answer, runtime, .. } = request;
            let stalled = async {
                match &runtime {
                    Some(runtime) => queues.store.stalled(runtime, patience).await,
                    None => std::future::pending().await,
                }
            };
            let mut stalled = std::pin::pin!(stalled);
            let first = std::future::poll_fn(|context| {
                if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                    return Poll::Ready(answer);
                }
                stalled.as_mut().poll(context).map(|()| {
                    let message = "the server did not answer";
                    let error = BackendError::new(BackendErrorKind::Timeout, message);
                    Err(AcquireError { error, fate: Fate::Abandoned })
                })
            });
            let first = first.await;
            // A request without an answer is taken back before the next one is sent.
            drop(answer);
            queues.at(&entry, |machine| machine.answered(&token, first));
        });
    }
}

impl fmt::Debug for KeyQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyQueues").field("keys", &self.len()).finish_non_exhaustive()
    }
}
