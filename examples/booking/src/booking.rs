//! Booking a slot: the critical section that all of this is about.

mod turns;

use std::sync::Arc;
use std::time::Duration;

use cache_lock::{BackendErrorKind, FencingToken, LockError, LockManager, cache_lock};
use tokio::sync::Semaphore;

use self::turns::Turns;
use crate::app::Settings;
use crate::clock::Clock;
use crate::domain::{Booking, Slot, SlotId, UserId};
use crate::error::{ApiError, Conflict, Write};
use crate::events::Days;
use crate::metrics::{Metrics, Outcome};
use crate::repository::{Repository, RepositoryError};

/// How long a booking waits for another of the same slot before it is a 423: about as long as
/// people take for "at once".
const PATIENCE: Duration = Duration::from_millis(250);

/// How long a crashed replica keeps a slot from being booked.
const LEASE: Duration = Duration::from_secs(5);

/// How many bookings a replica works on at once. More would make none of them faster, and all so slow
/// that locks are not had in time; so the rest wait here, for a while.
const AT_ONCE: usize = 128;
const LONGEST_QUEUE: Duration = Duration::from_secs(2);

/// Books slots, and cancels bookings.
#[derive(Debug)]
pub struct Bookings {
    turns: Turns,
    places: Semaphore,
    repository: Arc<dyn Repository>,
    locks: LockManager,
    days: Days,
    metrics: Arc<Metrics>,
    per_day: u64,
    think: Duration,
    clock: Clock,
}

/// A slot that the user has now.
#[derive(Debug)]
pub enum Booked {
    /// Since now.
    Now(Slot),
    /// Since an earlier request, perhaps one whose answer got lost.
    Already(Slot),
}

/// Why a slot was not booked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BookingError {
    /// A lock: not had, or lost on the way. cache-lock has logged it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The user has another booking under way.
    #[error("this user has another booking under way")]
    Busy,
    /// The database failed before anything was booked.
    #[error(transparent)]
    Read(#[from] RepositoryError),
    /// The database failed while the slot was being booked.
    #[error("it may be booked or not: {0}")]
    Write(#[source] RepositoryError),
    /// A later holder of the slot's lock has been there; nothing was written.
    #[error("the fence of {0} refused the write: a later holder has been there")]
    Refused(SlotId),
    /// There is no such slot.
    #[error("there is no such slot")]
    NotFound,
    /// The slot, or the user, is not as it must be.
    #[error("{0:?}")]
    Conflict(Conflict),
}

impl Bookings {
    /// Bookings in this repository, under these locks. `days` is told of changes.
    #[must_use]
    pub fn new(
        repository: Arc<dyn Repository>,
        locks: LockManager,
        days: Days,
        metrics: Arc<Metrics>,
        settings: &Settings,
    ) -> Self {
        let Settings { per_day, think, clock, .. } = *settings;
        let places = Semaphore::new(AT_ONCE);
        let turns = Turns::default();
        Self { turns, places, repository, locks, days, metrics, per_day, think, clock }
    }

    /// Books a slot for a user. To do it again is no error and changes nothing.
    ///
    /// # Errors
    /// [`ApiError::Locked`] if somebody else is booking this slot, [`ApiError::Busy`] if this user is
    /// booking another, [`ApiError::NotFound`], [`ApiError::Conflict`], [`ApiError::Unavailable`], [`ApiError::OutcomeOpen`].
    ///
    /// # Cancel safety
    /// Dropped, it may have booked, and leaves no lock behind.
    pub async fn book(&self, slot: SlotId, user: UserId) -> Result<Booked, ApiError> {
        let Some(_turn) = self.turns.take(user, PATIENCE).await else {
            self.metrics.booking(Outcome::Locked);
            return Err(ApiError::Busy);
        };
        let place = tokio::time::timeout(LONGEST_QUEUE, self.places.acquire()).await;
        let Ok(Ok(_place)) = place else {
            self.metrics.booking(Outcome::Overloaded);
            return Err(ApiError::Unavailable);
        };
        let outcome = book_as_user(self, user, slot).await;
        self.metrics.booking(match &outcome {
            Ok(Booked::Now(_)) => Outcome::Booked,
            Ok(Booked::Already(_)) => Outcome::HadAlready,
            Err(BookingError::Conflict(Conflict::AlreadyBooked)) => Outcome::TakenByOther,
            Err(BookingError::Conflict(_) | BookingError::NotFound) => Outcome::Refused,
            Err(BookingError::Lock(error)) if error.is_contended() => Outcome::Locked,
            Err(BookingError::Lock(LockError::Backend { source, .. }))
                if source.kind() == BackendErrorKind::Stalled =>
            {
                Outcome::Overloaded
            }
            Err(BookingError::Refused(_) | BookingError::Busy) => Outcome::Locked,
            Err(_) => Outcome::Failed,
        });
        if let Ok(Booked::Now(slot)) = &outcome {
            self.days.changed(slot.day);
        }
        outcome.map_err(Into::into)
    }

    /// Gives a user's slot back.
    ///
    /// It takes no lock: who has the slot is in the one document that is written, so the write is
    /// its own check.
    ///
    /// # Errors
    /// [`ApiError::Forbidden`] if somebody else has it, [`ApiError::NotFound`] if nobody has, or
    /// there is no such slot, [`ApiError::Conflict`] if it has begun; [`ApiError::Unavailable`],
    /// [`ApiError::OutcomeOpen`].
    ///
    /// # Cancel safety
    /// Dropped, it may have cancelled.
    pub async fn cancel(&self, id: SlotId, user: UserId) -> Result<Slot, ApiError> {
        let found = self.repository.slot(id).await?;
        let mut slot = found.ok_or(ApiError::NotFound("There is no such slot."))?;
        match &slot.booking {
            None => return Err(ApiError::NotFound("Nobody has this slot.")),
            Some(booking) if booking.user != user => {
                return Err(ApiError::Forbidden("Somebody else has this slot."));
            }
            Some(_) if slot.starts <= self.clock.now() => {
                return Err(ApiError::Conflict(Conflict::Past));
            }
            Some(_) => {}
        }
        // If it is gone by now, a second request of the same user has cancelled it.
        self.repository
            .release_slot(id, user)
            .await
            .map_err(|error| outcome_open(Write::Cancellation, &error))?;
        self.metrics.booking(Outcome::Cancelled);
        self.days.changed(slot.day);
        slot.booking = None;
        Ok(slot)
    }

    /// The section. Under the slot's lock, and safe without it: what it writes, it writes only if
    /// no later holder has been there.
    async fn book_under_fence(
        &self,
        id: SlotId,
        user: UserId,
        token: FencingToken,
    ) -> Result<Booked, BookingError> {
        let token = token.as_i64();
        // The first write of a hold raises the slot's fence: from here on no older holder can
        // write, and what is read now is what is decided by.
        let Some(mut slot) = self.repository.claim_slot(id, token).await? else {
            let exists = self.repository.slot(id).await?.is_some();
            return Err(if exists { BookingError::Refused(id) } else { BookingError::NotFound });
        };
        if slot.is_booked_by(user) {
            return Ok(Booked::Already(slot));
        }
        if slot.booking.is_some() {
            return Err(BookingError::Conflict(Conflict::AlreadyBooked));
        }
        if slot.starts <= self.clock.now() {
            return Err(BookingError::Conflict(Conflict::Past));
        }
        if self.repository.count_bookings(user, slot.day).await? >= self.per_day {
            return Err(BookingError::Conflict(Conflict::LimitReached));
        }
        tokio::time::sleep(self.think).await;

        let booking = Booking { user, at: self.clock.now(), token };
        let booked = self.repository.book_slot(id, &booking).await.map_err(BookingError::Write)?;
        if !booked {
            return Err(BookingError::Refused(id));
        }
        slot.booking = Some(booking);
        Ok(Booked::Now(slot))
    }
}

/// One booking of a user at a time, since the limit of a day is a matter of several slots: two
/// requests that count at the same moment would both find room for one more.
///
/// The slot's lock is always taken inside of the user's, never the other way round, so nobody waits
/// in a circle. This one is not fenced. If it fails, a user has a slot too many, which hurts nobody;
/// the slot itself is fenced.
#[cache_lock(
    prefix = "booking:user",
    key = "{user}",
    timeout = PATIENCE,
    expire = LEASE,
    or_else = without_users_lock,
    with = bookings.locks
)]
async fn book_as_user(
    bookings: &Bookings,
    user: UserId,
    slot: SlotId,
) -> Result<Booked, BookingError> {
    book_slot(bookings, slot, user).await
}

/// Contention for this lock is not about the slot, and the user is to be told so.
fn without_users_lock(error: LockError) -> Result<Booked, BookingError> {
    Err(if error.is_contended() { BookingError::Busy } else { error.into() })
}

/// One booking of a slot at a time, in the whole fleet.
#[cache_lock(
    prefix = "booking:slot",
    key = "{slot}",
    timeout = PATIENCE,
    expire = LEASE,
    bind = lock,
    with = bookings.locks
)]
async fn book_slot(
    bookings: &Bookings,
    slot: SlotId,
    user: UserId,
) -> Result<Booked, BookingError> {
    bookings.metrics.lock_wait(lock.waited());
    bookings.book_under_fence(slot, user, lock.token()).await
}

fn outcome_open(write: Write, error: &RepositoryError) -> ApiError {
    tracing::warn!(error = ?error.to_string(), "a write failed, and may have happened");
    ApiError::OutcomeOpen(write)
}

impl From<BookingError> for ApiError {
    fn from(error: BookingError) -> Self {
        match error {
            BookingError::Lock(error) if error.is_contended() => Self::Locked,
            // The body may have been on its way to the database.
            BookingError::Lock(error) if error.is_lost() => Self::OutcomeOpen(Write::Booking),
            BookingError::Lock(LockError::Backend { .. } | LockError::ShutDown) => {
                Self::Unavailable
            }
            BookingError::Lock(error) => {
                tracing::error!(error = ?error.to_string(), "a lock was used wrongly");
                Self::Internal
            }
            BookingError::Busy => Self::Busy,
            BookingError::Read(error) => error.into(),
            BookingError::Write(error) => outcome_open(Write::Booking, &error),
            BookingError::Refused(_) => Self::Locked,
            BookingError::NotFound => Self::NotFound("There is no such slot."),
            BookingError::Conflict(conflict) => Self::Conflict(conflict),
        }
    }
}
