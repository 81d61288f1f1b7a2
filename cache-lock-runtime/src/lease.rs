//! A lease: the time for which a lock is ours.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    clock::Instant,
    error::{LockError, LostReason},
    fence::FencingToken,
    key::LockKey,
    log,
    mutex::{Mutex, MutexGuard},
    options::Settings,
    owner::OwnerToken,
    signal::{Given, Signal},
    timer_queue::TimerId,
};

/// How much earlier than the server a holder takes its lease for over: the clocks of two machines
/// do not run at quite the same speed. The allowance is the one of the Redlock description.
pub(crate) fn drift(expire: Duration) -> Duration {
    expire / 100 + Duration::from_millis(2)
}

/// The lease of one grant. Its validity is counted from when the request that was granted was
/// *sent*: the server's count starts later, so it ends later.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) key: LockKey,
    pub(crate) owner: OwnerToken,
    pub(crate) fence: FencingToken,
    pub(crate) settings: Settings,
    pub(crate) acquired: Instant,
    /// The manager whose lease it is.
    pub(crate) manager: u64,
    /// The lease whose body, in the same task, asked for this one.
    pub(crate) enclosing: Option<Arc<Lease>>,
    /// Until when the lease is ours, in nanoseconds of [`Instant`].
    deadline: AtomicU64,
    /// When the record has run out if every extension that was asked for was carried out, in nanoseconds
    /// of [`Instant`].
    lasts: AtomicU64,
    state: AtomicU8,
    lost: Signal,
    schedule: Mutex<Schedule>,
    /// How many spans of a long hold were reported.
    long_hold: AtomicU32,
    /// It was said that the server could not be asked to extend it.
    not_renewed: AtomicBool,
    /// The connection to the server was lost since the server was last asked about it.
    doubtful: AtomicBool,
}

/// Where the lease stands in the renewer's timers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Schedule {
    /// The renewer has not seen it yet.
    Out,
    /// There, unless the renewer has just taken it out to look at it.
    In(TimerId),
    /// It is over, and must not be entered again.
    Over,
}

const HELD: u8 = 0;
const RELEASED: u8 = 1;
const EXPIRED: u8 = 2;
const GONE: u8 = 3;
const MAX_HOLD: u8 = 4;
const SHUT_DOWN: u8 = 5;

/// What a lease is made from.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) key: LockKey,
    pub(crate) owner: OwnerToken,
    pub(crate) fence: FencingToken,
    pub(crate) settings: Settings,
    pub(crate) acquired: Instant,
    /// Until when the record is ours.
    pub(crate) deadline: Instant,
    pub(crate) manager: u64,
    pub(crate) enclosing: Option<Arc<Lease>>,
}

impl Lease {
    pub(crate) fn new(grant: Grant) -> Self {
        let Grant { key, owner, fence, settings, acquired, deadline, manager, enclosing } = grant;
        let last_end = settings.max_hold.map_or(Instant::FAR, |max_hold| acquired + max_hold);
        let lasts = deadline + drift(settings.expire);
        let deadline = deadline.min(last_end);
        Self {
            key,
            owner,
            fence,
            settings,
            acquired,
            manager,
            enclosing,
            deadline: AtomicU64::new(deadline.as_nanos()),
            lasts: AtomicU64::new(lasts.as_nanos()),
            state: AtomicU8::new(HELD),
            lost: Signal::default(),
            schedule: Mutex::new(Schedule::Out),
            long_hold: AtomicU32::new(0),
            not_renewed: AtomicBool::new(false),
            doubtful: AtomicBool::new(false),
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        Instant::from_nanos(self.deadline.load(Ordering::Acquire))
    }

    /// When the record has run out: later than the deadline, also where the answer to an extension was
    /// lost.
    pub(crate) fn lasts(&self) -> Instant {
        Instant::from_nanos(self.lasts.load(Ordering::Acquire))
    }

    /// Takes note that an extension is asked for, before it is sent.
    pub(crate) fn extends(&self, now: Instant, expire: Duration) {
        self.lasts.fetch_max((now + expire).as_nanos(), Ordering::AcqRel);
    }

    /// The moment that renewal must not pass.
    pub(crate) fn last_end(&self) -> Option<Instant> {
        self.settings.max_hold.map(|max_hold| self.acquired + max_hold)
    }

    /// Whether a section may run under it. Changes nothing, unlike [`lost_reason`](Self::lost_reason).
    pub(crate) fn is_valid(&self, now: Instant) -> bool {
        !self.is_over() && now < self.deadline()
    }

    /// Why the lease is lost, if it is. Reads the clock, so that a lease ends on time even if
    /// no timer has gone off yet; a lost lease stays lost.
    pub(crate) fn lost_reason(&self) -> Option<LostReason> {
        self.lost_reason_by(Instant::now())
    }

    fn lost_reason_by(&self, now: Instant) -> Option<LostReason> {
        match self.state.load(Ordering::Acquire) {
            HELD if now >= self.deadline() => {
                self.lose(self.reason_at_deadline());
                self.lost_reason_by(now)
            }
            EXPIRED => Some(LostReason::Expired),
            GONE => Some(LostReason::Gone),
            MAX_HOLD => Some(LostReason::MaxHold),
            SHUT_DOWN => Some(LostReason::ShutDown),
            _ => None,
        }
    }

    fn reason_at_deadline(&self) -> LostReason {
        let allowance = drift(self.settings.expire);
        match self.last_end() {
            Some(end) if self.deadline() + allowance >= end => LostReason::MaxHold,
            _ => LostReason::Expired,
        }
    }

    pub(crate) fn lost_error(&self, reason: LostReason) -> LockError {
        LockError::Lost { key: self.key.clone(), reason }
    }

    /// Ends the lease, and warns. The first reason is the one that stays.
    pub(crate) fn lose(&self, reason: LostReason) {
        if self.lose_quietly(reason) {
            log::warn!(
                key = %self.key, fence = %self.fence, held = ?self.acquired.elapsed(),
                "lock lost: {reason}"
            );
        }
    }

    /// Ends the lease for a shutdown, which warns once for all leases. False if it had ended before.
    pub(crate) fn shut_down(&self) -> bool {
        let ended = self.lose_quietly(LostReason::ShutDown);
        if ended {
            log::debug!(
                key = %self.key, fence = %self.fence, held = ?self.acquired.elapsed(),
                "lock lost: {}", LostReason::ShutDown
            );
        }
        ended
    }

    fn lose_quietly(&self, reason: LostReason) -> bool {
        let state = match reason {
            LostReason::Expired => EXPIRED,
            LostReason::Gone => GONE,
            LostReason::MaxHold => MAX_HOLD,
            LostReason::ShutDown => SHUT_DOWN,
        };
        let ended = self.end(state);
        if ended {
            self.lost.give();
        }
        ended
    }

    /// The holder has given the lease up. False if it was lost before, or should have been.
    pub(crate) fn release(&self, now: Instant) -> bool {
        let in_time = now < self.deadline();
        self.end(RELEASED) && in_time
    }

    fn end(&self, state: u8) -> bool {
        self.state.compare_exchange(HELD, state, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state.load(Ordering::Acquire) != HELD
    }

    /// Ready when the lease is lost, for callers that ask before they read
    /// [`lost_reason`](Self::lost_reason).
    pub(crate) fn loss(&self) -> Given<'_> {
        self.lost.given()
    }

    /// Takes note of a successful extension. It never ends the lease earlier, nor later than the
    /// last end, though the request may have been sent later than it was reckoned; and a lease
    /// that is over stays over.
    pub(crate) fn extended(&self, now: Instant, sent_at: Instant, expire: Duration) {
        if self.lost_reason_by(now).is_none() {
            let deadline =
                valid_until(sent_at, expire).min(self.last_end().unwrap_or(Instant::FAR));
            self.deadline.fetch_max(deadline.as_nanos(), Ordering::AcqRel);
            self.extends(sent_at, expire);
        }
    }

    /// Whether the lease has been held for more spans than were reported; they are from now on.
    pub(crate) fn is_news(&self, spans: u32) -> bool {
        self.long_hold.fetch_max(spans, Ordering::Relaxed) < spans
    }

    /// Takes note of whether it could be extended. True if it could not, and could before.
    pub(crate) fn renewal_failed(&self, failed: bool) -> bool {
        !self.not_renewed.swap(failed, Ordering::Relaxed) && failed
    }

    /// Whether the server may have forgotten the lease, in a restart for example.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubtful.load(Ordering::Relaxed)
    }

    pub(crate) fn set_doubtful(&self, doubtful: bool) {
        self.doubtful.store(doubtful, Ordering::Relaxed);
    }

    pub(crate) fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock()
    }
}

/// The longest time that one request for a lease may take: an answer that took longer than half of
/// the lease is hardly worth having.
pub(crate) fn attempt(longest: Duration, expire: Duration) -> Duration {
    longest.min(expire / 2)
}

/// Until when a request that was sent at `sent_at` makes a lease ours.
pub(crate) fn valid_until(sent_at: Instant, expire: Duration) -> Instant {
    sent_at + expire.saturating_sub(drift(expire))
}
