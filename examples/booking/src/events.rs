//! The slots of a day, told anew whenever they change: what a page shows live.
//!
//! A replica hears of its own bookings at once, and of those of other replicas by asking the
//! database for each page of a day that a browser shows:
//! - of the first pages of the next two weeks once a second, which no number of readers changes, as there are
//!   14 of them;
//! - of each other page once a second too, or less often if many such pages are looked at;
//! - of a day that is over, or beyond the horizon, never: nothing of it can be booked.

mod streams;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::streams::{StreamPlace, Streams};
use crate::app::Settings;
use crate::clock::Clock;
use crate::domain::{Day, DayPage, Slot};
use crate::error::ApiError;
use crate::repository::{Repository, RepositoryError, SlotQuery};

/// How often the database is asked for what other replicas did.
const PERIOD: Duration = Duration::from_secs(1);

/// The first pages of so many days, from today on, are asked for that often whatever else is looked at.
const NEAR_DAYS: i64 = 14;

/// The queries for all other pages are so far apart: 50 a second at most.
const SHARE: Duration = Duration::from_millis(20);

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
    streams: Streams,
    tasks: TaskTracker,
    ended: CancellationToken,
    clock: Clock,
    horizon_days: i64,
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
    // What the queries go on for.
    _watched: Arc<Watched>,
    _place: StreamPlace,
}

impl Days {
    /// Days of this repository, until `ended`.
    #[must_use]
    pub fn new(
        repository: Arc<dyn Repository>,
        ended: CancellationToken,
        settings: &Settings,
    ) -> Self {
        Self(Arc::new(Inner {
            repository,
            watched: Mutex::default(),
            streams: Streams::default(),
            tasks: TaskTracker::new(),
            ended,
            clock: settings.clock,
            horizon_days: settings.horizon_days.into(),
        }))
    }

    /// The slots of a page, as they are now and as they change, for a client at this address.
    ///
    /// # Errors
    /// [`ApiError::Unavailable`] when the database fails, or the service ends;
    /// [`ApiError::TooMany`] when the address has too many of them.
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    pub async fn watch(&self, page: DayPage, address: IpAddr) -> Result<DayWatch, ApiError> {
        let place = self.0.streams.enter(address)?;
        let watch = |watched| Ok(DayWatch::of(watched, place, &self.0.ended));
        let known = self.0.watched().get(&page).and_then(Weak::upgrade);
        if let Some(watched) = known {
            return watch(watched);
        }
        let now = slots_of(&*self.0.repository, page).await?;
        if self.0.ended.is_cancelled() {
            return Err(ApiError::Unavailable);
        }
        let mut all = self.0.watched();
        all.retain(|_, watched| watched.strong_count() > 0);
        // Somebody may have come first meanwhile.
        if let Some(watched) = all.get(&page).and_then(Weak::upgrade) {
            drop(all);
            return watch(watched);
        }
        let (slots, _) = watch::channel(now);
        let watched = Arc::new(Watched { slots, changed: Notify::new() });
        all.insert(page, Arc::downgrade(&watched));
        drop(all);
        if self.0.period(page).is_some() {
            let looking = look(self.0.clone(), page, Arc::downgrade(&watched));
            let ended = self.0.ended.clone();
            self.0.tasks.spawn(async move { ended.run_until_cancelled(looking).await });
        }
        watch(watched)
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

    /// How long after the other the queries for a page are made, if they are.
    fn period(&self, page: DayPage) -> Option<Duration> {
        let today = Day::of(self.clock.now());
        let days = page.day().days_after(today);
        if !(0..=self.horizon_days).contains(&days) {
            return None;
        }
        if is_near(page, today) {
            return Some(PERIOD);
        }
        let watched = self.watched();
        let others = watched.keys().filter(|page| {
            let days = page.day().days_after(today);
            (0..=self.horizon_days).contains(&days) && !is_near(**page, today)
        });
        let count = u32::try_from(others.count()).unwrap_or(u32::MAX);
        Some(PERIOD.max(SHARE.saturating_mul(count)))
    }
}

fn is_near(page: DayPage, today: Day) -> bool {
    page.number() == 1 && page.day().days_after(today) < NEAR_DAYS
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

/// Keeps a page up to date while a stream watches it and a slot of it may change.
async fn look(days: Arc<Inner>, page: DayPage, watched: Weak<Watched>) {
    while let Some(period) = days.period(page) {
        {
            let Some(watched) = watched.upgrade() else { return };
            let _ = tokio::time::timeout(period, watched.changed.notified()).await;
        }
        if watched.strong_count() == 0 {
            return;
        }
        // A database that is away for a while shows by nothing changing; /readyz tells.
        let Ok(now) = slots_of(&*days.repository, page).await else { continue };
        let Some(watched) = watched.upgrade() else { return };
        watched.slots.send_if_modified(|slots| {
            let changed = *slots != now;
            *slots = now;
            changed
        });
    }
}

impl DayWatch {
    fn of(watched: Arc<Watched>, place: StreamPlace, ended: &CancellationToken) -> Self {
        let mut receiver = watched.slots.subscribe();
        // So that the first `next` is what there is now.
        receiver.mark_changed();
        Self { receiver, ended: ended.clone(), _watched: watched, _place: place }
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

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn days(repository: Arc<dyn Repository>, ended: CancellationToken) -> Days {
        let settings = Settings { clock: Clock::set_to(NOW), ..Settings::default() };
        Days::new(repository, ended, &settings)
    }

    /// The first page of the day so many days after today.
    fn page(days: i64) -> DayPage {
        DayPage::first(Day::of(NOW + Duration::days(days)))
    }

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
        let days = days(repository.clone(), ended.clone());
        let page = DayPage::first(slot.day);
        let mut ann = days.watch(page, HERE).await.expect("it reads");
        let mut bob = days.watch(page, HERE).await.expect("it reads");
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
    async fn a_day_that_nobody_can_book_is_never_asked_for() {
        let days = days(Arc::new(LocalRepository::new()), CancellationToken::new());
        let mut watches = Vec::new();
        for over in [-20_000, -2, -1, 367, 5000] {
            watches.push(days.watch(page(over), HERE).await.expect("it can be seen"));
        }
        assert!(days.0.tasks.is_empty());
        assert_eq!(next(&mut watches[0]).await.as_deref(), Some(&[][..]));
        for ahead in [0, 1, 366] {
            watches.push(days.watch(page(ahead), HERE).await.expect("it can be seen"));
            watches.push(days.watch(page(ahead), HERE).await.expect("a day counts once"));
        }
        assert_eq!(days.0.tasks.len(), 3);
        drop(watches);
        // The tasks notice within a period.
        while !days.0.tasks.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    #[tokio::test]
    async fn however_many_far_days_are_watched_the_near_ones_are_as_live_as_before() {
        let days = days(Arc::new(LocalRepository::new()), CancellationToken::new());
        let mut watches = Vec::new();
        for number in 0..=366 {
            // Of many addresses: one has not so many streams.
            let address = [10, 0, u8::try_from(number / 200).expect("it is small"), 1].into();
            watches.push(days.watch(page(number), address).await.expect("none is refused"));
        }
        assert_eq!(days.0.period(page(0)), Some(PERIOD));
        assert_eq!(days.0.period(page(13)), Some(PERIOD));
        assert_eq!(days.0.period(page(14)), Some(353 * SHARE), "50 queries a second, for 353 days");
        let second = DayPage::parse(page(0).day(), "2").expect("it is a page");
        assert_eq!(days.0.period(second), Some(353 * SHARE), "only the first page is sure");
        assert_eq!(days.0.period(page(-1)), None);
        assert_eq!(days.0.period(page(367)), None);
        watches.truncate(100);
        days.0.watched().retain(|_, watched| watched.strong_count() > 0);
        assert_eq!(days.0.period(page(14)), Some(86 * SHARE));
        watches.truncate(20);
        days.0.watched().retain(|_, watched| watched.strong_count() > 0);
        assert_eq!(days.0.period(page(14)), Some(PERIOD));
    }
}
