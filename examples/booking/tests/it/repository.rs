//! Both repositories keep the same promises.

use std::sync::Arc;

use booking::domain::{Booking, Day, Email, NewSlot, Role, Slot, SlotId, Title, User, UserId};
use booking::repository::{LocalRepository, Repository, SlotQuery};
use time::Duration;

use crate::service::{database, now, repository};

/// Runs a test on each.
async fn on_both(test: impl AsyncFn(Arc<dyn Repository>)) {
    test(Arc::new(LocalRepository::new())).await;
    let mongo = repository(&database()).await;
    test(Arc::new(mongo.clone())).await;
    mongo.discard().await.expect("it goes");
}

fn slot(hours: i64) -> Slot {
    let starts = now() + Duration::hours(hours);
    let title = Title::parse("Yoga").expect("it is a title");
    NewSlot { title, starts, ends: starts + Duration::hours(1) }.into_slot()
}

fn booking(user: UserId, token: i64) -> Booking {
    Booking { user, at: now(), token }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_one_account() {
    on_both(async |repository| {
        let email = Email::parse("ann@example.org").expect("it is an address");
        let user = |role| User {
            id: UserId::random(),
            email: email.clone(),
            password_hash: "$argon2id$".to_owned(),
            role,
            networks: Vec::new(),
        };
        let (first, second) = (user(Role::Organiser), user(Role::Guest));
        assert!(repository.insert_user(&first).await.expect("it writes"));
        assert!(!repository.insert_user(&second).await.expect("it writes"));
        let found = repository.user_by_email(&email).await.expect("it reads").expect("it is there");
        assert_eq!((found.id, found.role), (first.id, Role::Organiser));
        assert!(repository.user(first.id).await.expect("it reads").is_some());
        assert!(repository.user(second.id).await.expect("it reads").is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_holder_writes_nothing() {
    on_both(async |repository| {
        let [ann, bob] = [UserId::random(), UserId::random()];
        let yoga = slot(24);
        repository.insert_slots(std::slice::from_ref(&yoga)).await.expect("it writes");
        let claim =
            async |token| repository.claim_slot(yoga.id, token).await.expect("it writes").is_some();
        let book = async |user, token| {
            repository.book_slot(yoga.id, &booking(user, token)).await.expect("it writes")
        };
        assert!(claim(10).await);
        assert!(claim(10).await, "a claim may be repeated");
        assert!(!claim(9).await);
        assert!(!book(bob, 9).await, "the fence is at 10, though nobody has booked");
        assert!(book(ann, 10).await);
        assert!(!book(bob, 11).await, "it is booked");
        assert!(!repository.release_slot(yoga.id, bob).await.expect("it writes"));
        assert!(repository.release_slot(yoga.id, ann).await.expect("it writes"));
        assert!(!book(bob, 9).await, "a cancellation does not lower the fence");
        assert!(book(bob, 12).await, "a later holder may book without a claim");
        let found = repository.slot(yoga.id).await.expect("it reads").expect("it is there");
        assert!(found.is_booked_by(bob));
        let nothing = repository.claim_slot(SlotId::random(), 99).await.expect("it reads");
        assert!(nothing.is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_are_found_in_order_by_day_and_by_owner() {
    on_both(async |repository| {
        let ann = UserId::random();
        let slots = [slot(72), slot(24), slot(24), slot(24), slot(-2)];
        repository.insert_slots(&slots).await.expect("it writes");
        let list = async |day: Option<Day>, after, limit| {
            let query = SlotQuery { day, after, limit, ..SlotQuery::default() };
            repository.slots(&query).await.expect("it reads")
        };
        let all = list(None, None, 10).await;
        assert!(all.is_sorted_by_key(Slot::position) && all.len() == 5, "{all:?}");
        assert_eq!(all[4], slots[0], "a slot comes back as it went in");
        let mut pages = Vec::new();
        while let Some(slot) =
            list(None, pages.last().map(Slot::position), 1).await.into_iter().next()
        {
            pages.push(slot);
        }
        assert_eq!(pages, all, "each once, those of the same time too");
        let day = list(Some(slots[1].day), None, 10).await;
        assert_eq!(day.len(), 3);
        for (before, slot) in day.iter().enumerate() {
            let query = SlotQuery { day: Some(slot.day), skip: before, limit: 1, after: None };
            let found = repository.slots(&query).await.expect("it reads");
            assert_eq!(found.as_slice(), std::slice::from_ref(slot));
            let counted = repository.slots_before(slot).await.expect("it reads");
            assert_eq!(counted, before as u64, "others of the same time have an order, too");
        }

        for slot in [&slots[0], &slots[1], &slots[4]] {
            let booked = repository.book_slot(slot.id, &booking(ann, 1)).await;
            assert!(booked.expect("it writes"));
        }
        let his = repository.slots_of(ann, now()).await.expect("it reads");
        let ids: Vec<_> = his.iter().map(|slot| slot.id).collect();
        assert_eq!(ids, [slots[1].id, slots[0].id], "not the one that has ended");
        let count = repository.count_bookings(ann, slots[1].day).await.expect("it reads");
        assert_eq!(count, 1);
        assert_eq!(repository.count_bookings(UserId::random(), slots[1].day).await.ok(), Some(0));
        repository.ping().await.expect("it is there");
    })
    .await;
}
