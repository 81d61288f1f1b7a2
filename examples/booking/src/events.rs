//! The slots of a day, told anew whenever they change: what a page shows live.
//!
//! A replica hears of its own bookings at once, and of those of other replicas by asking the
//! database once a second for each page of a day that somebody looks at.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::{Day, DayPage, Slot};
use crate::error::ApiError;
use crate::repository::{Repository, RepositoryError, SlotQuery};

/// How often the database is asked for what other replicas did.
const PERIOD: Duration = Duration::from_secs(1);

/// So many pages of days can be watched at once: each costs a query a second.
const MOST_DAYS: usize = 64;

/// The slots of a page, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaySlots {
    /// The slots.
    pub slots: Arc<[Slot]>,
    /// Whether the day has later slots.
    pub more: bool,
}

/// Watches days.
#[derive(Debug, Clone)]
pub struct Days(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    repository: Arc<dyn Repository>,
    watched: Mutex<HashMap<DayPage, Weak<Watched>>>,
    tasks: TaskTracker,
    ended: CancellationToken,
}

#[derive(Debug)]
struct Watched {
    slots: watch::Sender<DaySlots>,
    changed: Notify,
}

/// What the slots of a page are, now and from now on. Dropped, it watches no more.
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

    /// The slots of a page, as they are now and as they change.
    ///
    /// # Errors
    /// [`ApiError::Unavailable`] when the database fails, or too many pages are being watched.
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    pub async fn watch(&self, page: DayPage) -> Result<DayWatch, ApiError> {
        if let Some(watched) = self.0.watched().get(&page).and_then(Weak::upgrade) {
            return Ok(DayWatch::of(watched, &self.0.ended));
        }
        let now = slots_of(&*self.0.repository, page).await?;
        let mut all = self.0.watched();
        all.retain(|_, watched| watched.strong_count() > 0);
        // Somebody may have come first meanwhile.
        if let Some(watched) = all.get(&page).and_then(Weak::upgrade) {
            return Ok(DayWatch::of(watched, &self.0.ended));
        }
        if all.len() >= MOST_DAYS || self.0.ended.is_cancelled() {
            return Err(ApiError::Unavailable);
        }
        let (slots, _) = watch::channel(now);
        let watched = Arc::new(Watched { slots, changed: Notify::new() });
        all.insert(page, Arc::downgrade(&watched));
        drop(all);
        let looking = look(self.0.repository.clone(), page, Arc::downgrade(&watched));
        let ended = self.0.ended.clone();
        self.0.tasks.spawn(async move { ended.run_until_cancelled(looking).await });
        Ok(DayWatch::of(watched, &self.0.ended))
    }

    /// Says that something of this day was changed here, so that it is looked at now.
    pub fn changed(&self, day: Day) {
        let all = self.0.watched();
        let pages = all.iter().filter(|(page, _)| page.day() == day);
        for watched in pages.filter_map(|(_, watched)| watched.upgrade()) {
            watched.changed.notify_one();
        }
    }
}

impl Inner {
    fn watched(&self) -> std::sync::MutexGuard<'_, HashMap<DayPage, Weak<Watched>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slots of a page.
///
/// # Errors
/// Those of the repository.
pub async fn slots_of(
    repository: &dyn Repository,
    page: DayPage,
) -> Result<DaySlots, RepositoryError> {
    // The one more tells whether there is a later page.
    let limit = DayPage::LENGTH + 1;
    let query = SlotQuery { day: Some(page.day()), after: None, skip: page.skipped(), limit };
    let mut slots = repository.slots(&query).await?;
    let more = slots.len() > DayPage::LENGTH;
    slots.truncate(DayPage::LENGTH);
    Ok(DaySlots { slots: slots.into(), more })
}

/// Keeps a page up to date for as long as somebody watches it.
async fn look(repository: Arc<dyn Repository>, page: DayPage, watched: Weak<Watched>) {
    loop {
        {
            let Some(watched) = watched.upgrade() else { return };
            let _ = tokio::time::timeout(PERIOD, watched.changed.notified()).await;
        }
        if watched.strong_count() == 0 {
            return;
        }
        // A database that is away for a while shows by nothing changing; /readyz tells.
        let Ok(now) = slots_of(&*repository, page).await else { continue };
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
    async fn next(watch: &mut DayWatch) -> Option<Arc<[Slot]>> {
        let minute = std::time::Duration::from_secs(60);
        tokio::time::timeout(minute, watch.next()).await.expect("it is told").map(|now| now.slots)
    }

    #[tokio::test]
    async fn a_day_is_told_as_it_is_and_whenever_anybody_changes_it() {
        let repository = Arc::new(LocalRepository::new());
        let slot = slot();
        repository.insert_slots(std::slice::from_ref(&slot)).await.expect("it writes");
        let ended = CancellationToken::new();
        let days = Days::new(repository.clone(), ended.clone());
        let page = DayPage::first(slot.day);
        let mut ann = days.watch(page).await.expect("it reads");
        let mut bob = days.watch(page).await.expect("it reads");
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
            watches.push(days.watch(DayPage::first(day)).await.expect("there is room"));
            watches.push(days.watch(DayPage::first(day)).await.expect("a day counts once"));
            day = day.next();
        }
        assert!(matches!(days.watch(DayPage::first(day)).await, Err(ApiError::Unavailable)));
        drop(watches);
        // The tasks notice within a period.
        while !days.0.tasks.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert!(days.watch(DayPage::first(day)).await.is_ok());
    }
}
