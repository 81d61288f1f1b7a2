//! The slots of a day, told anew whenever they change: what a page shows live.
//!
//! A replica hears of its own bookings at once, and of those of other replicas by asking the
//! database once a second for each day that somebody looks at.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::{Day, Slot};
use crate::error::ApiError;
use crate::repository::{Repository, RepositoryError, SlotQuery};

/// How often the database is asked for what other replicas did.
const PERIOD: Duration = Duration::from_secs(1);

/// So many slots of a day are shown at most.
pub const SLOTS_OF_A_DAY: usize = 200;

/// So many days can be watched at once: each costs a query a second.
const MOST_DAYS: usize = 64;

/// The slots of a day, in order.
pub type DaySlots = Arc<[Slot]>;

/// Watches days.
#[derive(Debug, Clone)]
pub struct Days(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    repository: Arc<dyn Repository>,
    watched: Mutex<HashMap<Day, Weak<Watched>>>,
    tasks: TaskTracker,
    ended: CancellationToken,
}

#[derive(Debug)]
struct Watched {
    slots: watch::Sender<DaySlots>,
    changed: Notify,
}

/// What a day's slots are, now and from now on. Dropped, it watches no more.
#[derive(Debug)]
pub struct DayWatch {
    receiver: watch::Receiver<DaySlots>,
    ended: CancellationToken,
    // What the query of each second goes on for.
    _watched: Arc<Watched>,
}

impl Days {
    /// Days of this repository, until `ended`.
    #[must_use]
    pub fn new(repository: Arc<dyn Repository>, ended: CancellationToken) -> Self {
        let tasks = TaskTracker::new();
        Self(Arc::new(Inner { repository, watched: Mutex::default(), tasks, ended }))
    }

    /// The slots of a day, as they are now and as they change.
    ///
    /// # Errors
    /// [`ApiError::Unavailable`] when the database fails, or too many days are being watched.
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    pub async fn watch(&self, day: Day) -> Result<DayWatch, ApiError> {
        if let Some(watched) = self.0.watched().get(&day).and_then(Weak::upgrade) {
            return Ok(DayWatch::of(watched, &self.0.ended));
        }
        let now = self.0.slots_of(day).await?;
        let mut all = self.0.watched();
        all.retain(|_, watched| watched.strong_count() > 0);
        // Somebody may have come first meanwhile.
        if let Some(watched) = all.get(&day).and_then(Weak::upgrade) {
            return Ok(DayWatch::of(watched, &self.0.ended));
        }
        if all.len() >= MOST_DAYS || self.0.ended.is_cancelled() {
            return Err(ApiError::Unavailable);
        }
        let (slots, _) = watch::channel(now);
        let watched = Arc::new(Watched { slots, changed: Notify::new() });
        all.insert(day, Arc::downgrade(&watched));
        drop(all);
        let looking = look(self.0.repository.clone(), day, Arc::downgrade(&watched));
        let ended = self.0.ended.clone();
        self.0.tasks.spawn(async move { ended.run_until_cancelled(looking).await });
        Ok(DayWatch::of(watched, &self.0.ended))
    }

    /// Says that something of this day was changed here, so that it is looked at now.
    pub fn changed(&self, day: Day) {
        if let Some(watched) = self.0.watched().get(&day).and_then(Weak::upgrade) {
            watched.changed.notify_one();
        }
    }
}

impl Inner {
    fn watched(&self) -> std::sync::MutexGuard<'_, HashMap<Day, Weak<Watched>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn slots_of(&self, day: Day) -> Result<DaySlots, RepositoryError> {
        slots_of(&*self.repository, day).await
    }
}

async fn slots_of(repository: &dyn Repository, day: Day) -> Result<DaySlots, RepositoryError> {
    let query = SlotQuery { day: Some(day), after: None, limit: SLOTS_OF_A_DAY };
    Ok(repository.slots(&query).await?.into())
}

/// Keeps a day up to date for as long as somebody watches it.
async fn look(repository: Arc<dyn Repository>, day: Day, watched: Weak<Watched>) {
    loop {
        {
            let Some(watched) = watched.upgrade() else { return };
            let _ = tokio::time::timeout(PERIOD, watched.changed.notified()).await;
        }
        if watched.strong_count() == 0 {
            return;
        }
        // A database that is away for a while shows by nothing changing; /readyz tells.
        let Ok(now) = slots_of(&*repository, day).await else { continue };
        let Some(watched) = watched.upgrade() else { return };
        watched.slots.send_if_modified(|slots| {
            let changed = *slots != now;
            *slots = now;
            changed
        });
    }
}

impl DayWatch {
    fn of(watched: Arc<Watched>, ended: &CancellationToken) -> Self {
        let mut receiver = watched.slots.subscribe();
        // So that the first `next` is what there is now.
        receiver.mark_changed();
        Self { receiver, ended: ended.clone(), _watched: watched }
    }

    /// The slots: at first as they are, then whenever they have changed. `None`: the service ends.
    ///
    /// # Cancel safety
    /// Nothing is missed.
    pub async fn next(&mut self) -> Option<DaySlots> {
        self.ended.run_until_cancelled(self.receiver.changed()).await?.ok()?;
        Some(self.receiver.borrow_and_update().clone())
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use time::{Duration, OffsetDateTime};

    use super::*;
    use crate::domain::{Booking, NewSlot, Title, UserId};
    use crate::repository::LocalRepository;

    const NOW: OffsetDateTime = datetime!(2027-12-31 23:30 UTC);

    fn slot() -> Slot {
        let starts = NOW + Duration::hours(24);
        let title = Title::parse("Yoga").expect("it is a title");
        NewSlot { title, starts, ends: starts + Duration::hours(1) }.into_slot()
    }

    /// What is told next. To wait in vain is a failure, not a hang.
    async fn next(watch: &mut DayWatch) -> Option<DaySlots> {
        let minute = std::time::Duration::from_secs(60);
        tokio::time::timeout(minute, watch.next()).await.expect("it is told")
    }

    #[tokio::test]
    async fn a_day_is_told_as_it_is_and_whenever_anybody_changes_it() {
        let repository = Arc::new(LocalRepository::new());
        let slot = slot();
        repository.insert_slots(std::slice::from_ref(&slot)).await.expect("it writes");
        let ended = CancellationToken::new();
        let days = Days::new(repository.clone(), ended.clone());
        let mut ann = days.watch(slot.day).await.expect("it reads");
        let mut bob = days.watch(slot.day).await.expect("it reads");
        assert_eq!(&*next(&mut ann).await.expect("it goes on"), std::slice::from_ref(&slot));
        assert_eq!(&*next(&mut bob).await.expect("it goes on"), std::slice::from_ref(&slot));

        // As another replica does it: nobody here is told.
        let booking = Booking { user: UserId::random(), at: NOW, token: 1 };
        assert!(repository.book_slot(slot.id, &booking).await.expect("it writes"));
        for watch in [&mut ann, &mut bob] {
            let now = next(watch).await.expect("it goes on");
            assert!(now[0].booking.is_some());
        }
        drop(bob);
        assert!(repository.release_slot(slot.id, booking.user).await.expect("it writes"));
        days.changed(slot.day);
        assert!(next(&mut ann).await.expect("it goes on")[0].booking.is_none());
        ended.cancel();
        assert!(next(&mut ann).await.is_none());
    }

    #[tokio::test]
    async fn days_are_watched_by_few_queries_and_no_longer_than_somebody_looks() {
        let days = Days::new(Arc::new(LocalRepository::new()), CancellationToken::new());
        let mut watches = Vec::new();
        let mut day = Day::of(NOW);
        for _ in 0..MOST_DAYS {
            watches.push(days.watch(day).await.expect("there is room"));
            watches.push(days.watch(day).await.expect("a day counts once"));
            day = day.next();
        }
        assert!(matches!(days.watch(day).await, Err(ApiError::Unavailable)));
        drop(watches);
        // The tasks notice within a period.
        while !days.0.tasks.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert!(days.watch(day).await.is_ok());
    }
}
