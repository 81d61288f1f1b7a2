//! What each call does, on both stores.

use hostel::error::HostelError;
use hostel::hostel::{Hostel, Receipt};
use hostel::model::PaymentState;
use hostel::provider::{Held, Provider, ProviderError};
use hostel::store::Store;

use crate::house::{Odd, Oddity, in_mongodb, local, look, room_of, sound};

/// Makes a test of a function, once for each store.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod in_memory {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::local().await).await;
            })*
        }
        mod in_a_database {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::in_mongodb(super::$name).await;
            })*
        }
    };
}

on_both![
    a_bed_is_reserved_moved_and_cancelled,
    a_full_room_keeps_its_occupants,
    a_missing_student_takes_no_bed,
    a_missing_room_costs_nothing,
    a_student_has_one_bed,
    a_call_can_be_made_again_with_its_key,
    a_key_is_for_one_purpose,
    a_payment_that_is_not_taken_or_not_answered_leaves_no_trace,
    a_student_without_a_bed_can_be_expelled,
    a_race_for_one_bed_has_one_winner,
];

fn receipt(room: u32, price: i64) -> Receipt {
    Receipt { room, price, settled: true }
}

async fn payment<S: Store, P: Provider>(hostel: &Hostel<S, P>, key: &str) -> PaymentState {
    let payment = hostel.store.payment(key).await.expect("it answers").expect("it is there");
    assert!(!payment.open, "{payment:?}");
    payment.state
}

async fn a_bed_is_reserved_moved_and_cancelled<S: Store, P: Provider>(hostel: Hostel<S, P>) {
    let reserved = hostel.reserve("ann", 1, "a").await;
    assert_eq!(reserved.expect("it is free"), receipt(1, 900));
    assert_eq!(sound(&look(&hostel).await), [(1, vec!["ann".to_owned()]), (2, vec![])]);
    assert_eq!(look(&hostel).await.audit().captured, 900);

    let moved = hostel.move_room("ann", 2, "b").await;
    assert_eq!(moved.expect("it is free"), receipt(2, 1000));
    assert_eq!(sound(&look(&hostel).await), [(1, vec![]), (2, vec!["ann".to_owned()])]);
    assert_eq!(look(&hostel).await.audit().captured, 1000);
    assert_eq!(payment(&hostel, "a").await, PaymentState::Refunded);

    assert_eq!(hostel.cancel("ann").await.expect("there is one"), 2);
    assert_eq!(room_of(&hostel, "ann").await, None);
    let audit = look(&hostel).await.audit();
    assert_eq!((audit.captured, audit.banked, audit.refunded), (0, 0, 2));
    assert!(matches!(hostel.cancel("ann").await, Err(HostelError::NoBed)));
    assert!(matches!(hostel.move_room("ann", 1, "c").await, Err(HostelError::NoBed)));
}

async fn a_full_room_keeps_its_occupants<S: Store, P: Provider>(hostel: Hostel<S, P>) {
    hostel.reserve("ann", 1, "a").await.expect("it is free");
    hostel.reserve("bob", 2, "b").await.expect("it is free");
    for number in 0..3 {
        let reserved = hostel.reserve("cy", 1, &format!("c{number}")).await;
        assert!(matches!(reserved, Err(HostelError::RoomFull(1))), "{reserved:?}");
        let moved = hostel.move_room("bob", 1, &format!("m{number}")).await;
        assert!(matches!(moved, Err(HostelError::RoomFull(1))), "{moved:?}");
    }
    let rooms = sound(&look(&hostel).await);
    assert_eq!(rooms, [(1, vec!["ann".to_owned()]), (2, vec!["bob".to_owned()])]);
    assert_eq!(look(&hostel).await.audit().banked, 1900);
}

async fn a_missing_student_takes_no_bed<S: Store, P: Provider>(hostel: Hostel<S, P>) {
    let reserved = hostel.reserve("nobody", 1, "n").await;
    assert!(matches!(reserved, Err(HostelError::NoSuchStudent(_))), "{reserved:?}");
    let moved = hostel.move_room("nobody", 1, "m").await;
    assert!(matches!(moved, Err(HostelError::NoSuchStudent(_))), "{moved:?}");
    let cancelled = hostel.cancel("nobody").await;
    assert!(matches!(cancelled, Err(HostelError::NoSuchStudent(_))), "{cancelled:?}");
    assert_eq!(sound(&look(&hostel).await), [(1, vec![]), (2, vec![])]);
    // The till does not know who is enrolled.
    assert_eq!(payment(&hostel, "n").await, PaymentState::Refunded);
    let books = hostel.provider.books().await.expect("they can be read");
    assert_eq!(books.len(), 1);
    assert_eq!((books[0].amount, books[0].state), (900, Held::Refunded));
}

async fn a_missing_room_costs_nothing<S: Store, P: Provider>(hostel: Hostel<S, P>) {
    let reserved = hostel.reserve("ann", 9, "a").await;
    assert!(matches!(reserved, Err(HostelError::NoSuchRoom(9))), "{reserved:?}");
    hostel.reserve("ann", 1, "b").await.expect("it is free");
    let moved = hostel.move_room("ann", 9, "c").await;
    assert!(matches!(moved, Err(HostelError::NoSuchRoom(9))), "{moved:?}");
    assert_eq!(room_of(&hostel, "ann").await, Some(1));
    assert_eq!(hostel.provider.books().await.expect("they can be read").len(), 1);
}

async fn a_student_has_one_bed<S: Store, P: Provider>(hostel: Hostel<S, P>) {
    let (first, second) =
        tokio::join!(hostel.reserve("ann", 1, "a"), hostel.reserve("ann", 2, "b"));
    let (won, lost) = if first.is_ok() { (first, second) } else { (second, first) };
    let room = won.expect("one of them has it").room;
    assert!(matches!(lost, Err(HostelError::HasBed { room: has }) if has == room), "{lost:?}");
    assert_eq!(room_of(&hostel, "ann").await, Some(room));
    let moved = hostel.move_room("ann", room, "c").await;
    assert!(matches!(moved, Err(HostelError::HasBed { .. })), "{moved:?}");
    assert_eq!(room_of(&hostel, "ann").await, Some(room));
}

async fn a_call_can_be_made_again_with_its_key<S: Store, P: Provider>(hostel: Hostel<S, P>) {
    for _ in 0..2 {
        let reserved = hostel.reserve("ann", 1, "a").await;
        assert_eq!(reserved.expect("it is hers"), receipt(1, 900));
    }
    for _ in 0..2 {
        let moved = hostel.move_room("ann", 2, "b").await;
        assert_eq!(moved.expect("it is hers"), receipt(2, 1000));
    }
    assert_eq!(room_of(&hostel, "ann").await, Some(2));
    assert_eq!(look(&hostel).await.audit().banked, 1000);
}

async fn a_key_is_for_one_purpose<S: Store, P: Provider>(hostel: Hostel<S, P>) {
    hostel.reserve("ann", 1, "a").await.expect("it is free");
    for (student, room) in [("bob", 1), ("bob", 2), ("ann", 2)] {
        let reserved = hostel.reserve(student, room, "a").await;
        assert!(matches!(reserved, Err(HostelError::KeyUsed(_))), "{reserved:?}");
    }
    hostel.cancel("ann").await.expect("there is one");
    let reserved = hostel.reserve("ann", 1, "a").await;
    assert!(matches!(reserved, Err(HostelError::Refunded(_))), "{reserved:?}");
    assert_eq!(sound(&look(&hostel).await), [(1, vec![]), (2, vec![])]);
}

async fn a_payment_that_is_not_taken_or_not_answered_leaves_no_trace<S: Store, P: Provider>(
    hostel: Hostel<S, P>,
) {
    hostel.reserve("bob", 2, "b").await.expect("it is free");
    for oddity in [Oddity::Declines, Oddity::LosesTheAnswer, Oddity::LosesTheRequest] {
        let Hostel { name, locks, store, provider, steps } = hostel.clone();
        let odd = Hostel { name, locks, store, provider: Odd(provider, oddity), steps };
        let key = format!("{oddity:?}");
        let reserved = odd.reserve("ann", 1, &key).await.expect_err("it is not paid");
        let moved = odd.move_room("bob", 1, &format!("m{key}")).await.expect_err("it is not paid");
        for error in [reserved, moved] {
            match error {
                HostelError::Provider(ProviderError::Declined) => {
                    assert_eq!(oddity, Oddity::Declines);
                }
                HostelError::Provider(ProviderError::TimedOut) => {
                    assert_ne!(oddity, Oddity::Declines);
                }
                error => panic!("{error:?}"),
            }
        }
        assert_eq!(sound(&look(&hostel).await), [(1, vec![]), (2, vec!["bob".to_owned()])]);
        assert_eq!(payment(&hostel, &key).await, PaymentState::Refunded);
        // A request that was slow on its way must find the key closed.
        let late = hostel.provider.authorise(&key, 900).await;
        assert!(matches!(late, Err(ProviderError::Closed)), "{late:?}");
        let late = hostel.provider.capture(&key).await;
        assert!(matches!(late, Err(ProviderError::Closed)), "{late:?}");
    }
}

async fn a_student_without_a_bed_can_be_expelled<S: Store, P: Provider>(hostel: Hostel<S, P>) {
    hostel.reserve("ann", 1, "a").await.expect("it is free");
    assert!(!hostel.store.expel("ann").await.expect("it answers"));
    assert!(!hostel.store.expel("nobody").await.expect("it answers"));
    hostel.cancel("ann").await.expect("there is one");
    assert!(hostel.store.expel("ann").await.expect("it answers"));
    assert_eq!(look(&hostel).await.students.len(), 2);
}

async fn a_race_for_one_bed_has_one_winner<S: Store, P: Provider>(hostel: Hostel<S, P>) {
    let (ann, bob, cy) = tokio::join!(
        hostel.reserve("ann", 1, "a"),
        hostel.reserve("bob", 1, "b"),
        hostel.reserve("cy", 1, "c"),
    );
    let outcomes = [ann, bob, cy];
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    for outcome in outcomes {
        assert!(matches!(outcome, Ok(_) | Err(HostelError::RoomFull(1))), "{outcome:?}");
    }
    assert_eq!(look(&hostel).await.audit().banked, 900);
    sound(&look(&hostel).await);
}
