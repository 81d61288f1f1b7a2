//! Holders that do not know that they hold nothing any more. Their locks are of another manager than
//! those of everybody else, so nothing excludes them but the fences.

use hostel::error::HostelError;
use hostel::hostel::Hostel;
use hostel::provider::Provider;
use hostel::store::{Claim, Store};

use crate::crashes::{Call, all_steps, recover};
use crate::house::{
    in_mongodb, local, look, room_of, sound, step_by_step, stop_at, without_exclusion,
};

/// Stops a call after each of its steps, lets others do `meanwhile`, and then lets it go on.
async fn overtaken<S: Store, P: Provider>(
    hostel: &Hostel<S, P>,
    meanwhile: impl AsyncFn(&Hostel<S, P>, usize),
) {
    let mut refused = 0;
    for (round, (call, index, step, is_decided)) in all_steps().enumerate() {
        call.prepare(hostel, round).await;
        let (slow, mut reached) = step_by_step(&without_exclusion(hostel));
        let mut late = Box::pin(call.make(&slow, round));
        let Ok(stopped) = stop_at(&mut late, &mut reached, index).await else {
            panic!("{call:?} ends before {step:?}");
        };
        assert_eq!(stopped.step, step, "{call:?}");

        let others = without_exclusion(hostel);
        meanwhile(&others, round).await;
        let before = sound(&look(hostel).await);

        drop(reached);
        drop(stopped);
        let outcome = late.await;
        let what = format!("{call:?} after {step:?}: {outcome:?}");
        // A call that has decided has had its way. The others are refused by a fence, unless they meet
        // a full room or the end of their payment before they get to one.
        assert_eq!(outcome.is_ok(), is_decided, "{what}");
        refused += u32::from(matches!(outcome, Err(HostelError::Stale { .. })));
        // What it may have done is a payment that is open; never a bed.
        let now = look(hostel).await.rooms.into_iter();
        let now: Vec<_> = now.map(|room| (room.number, room.occupants)).collect();
        assert_eq!(now, before, "{what}");
        recover(&without_exclusion(hostel)).await;
        assert_eq!(sound(&look(hostel).await), before, "{what}");

        for student in ["ann", "bob"] {
            match without_exclusion(hostel).cancel(student).await {
                Ok(_) | Err(HostelError::NoBed) => {}
                Err(error) => panic!("{what}: {error:?}"),
            }
        }
    }
    assert!(refused > 0, "the fences have refused nobody");
}

async fn recovery_overtakes<S: Store, P: Provider>(hostel: Hostel<S, P>) {
    overtaken(&hostel, async |others, _| {
        // A recovery finds a student only by what is open; one whose student it does not know of would
        // not be late.
        others.settle("ann").await.expect("it can be settled");
    })
    .await;
}

async fn a_reservation_overtakes<S: Store, P: Provider>(hostel: Hostel<S, P>) {
    overtaken(&hostel, async |others, round| {
        // In the room that the late one wants, or in the one that it leaves.
        for room in [1, 2] {
            let _ = others.reserve("ann", room, &format!("c-{round}-{room}")).await;
        }
        assert!(room_of(others, "ann").await.is_some());
    })
    .await;
}

async fn somebody_else_overtakes<S: Store, P: Provider>(hostel: Hostel<S, P>) {
    overtaken(&hostel, async |others, round| {
        others.settle("ann").await.expect("it can be settled");
        let _ = others.cancel("ann").await;
        // The late one's bed is gone when it comes to take it, or is somebody else's when it gives it back.
        others.reserve("bob", 1, &format!("d-{round}")).await.expect("it is free");
    })
    .await;
}

#[tokio::test]
async fn a_holder_that_a_recovery_has_overtaken_does_no_harm() {
    recovery_overtakes(local().await).await;
}

#[tokio::test]
async fn a_holder_that_its_own_student_has_overtaken_does_no_harm() {
    a_reservation_overtakes(local().await).await;
}

#[tokio::test]
async fn a_holder_that_another_student_has_overtaken_does_no_harm() {
    somebody_else_overtakes(local().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_holders_are_refused_by_a_database_too() {
    in_mongodb(recovery_overtakes).await;
    in_mongodb(a_reservation_overtakes).await;
    in_mongodb(somebody_else_overtakes).await;
}

async fn writes_carry_the_token<S: Store, P: Provider>(hostel: Hostel<S, P>) {
    let store = &hostel.store;
    let claimed = store.claim_room(1, 5).await.expect("it answers");
    assert!(matches!(claimed, Claim::Held(room) if room.fence == 5));
    assert_eq!(store.claim_room(1, 4).await.expect("it answers"), Claim::Stale);
    assert_eq!(store.claim_room(9, 4).await.expect("it answers"), Claim::Missing);
    for (token, accepted) in [(4, false), (6, false), (5, true)] {
        assert_eq!(store.add_occupant(1, token, "ann").await.expect("it answers"), accepted);
        let added = store.room(1).await.expect("it answers").expect("it is there").occupants;
        assert_eq!(added.len(), usize::from(accepted));
    }
    assert!(store.add_occupant(1, 5, "ann").await.expect("it answers"), "twice is once");
    assert_eq!(store.room(1).await.expect("it answers").expect("it is there").occupants.len(), 1);
    for (token, accepted) in [(4, false), (6, false), (5, true)] {
        assert_eq!(store.remove_occupant(1, token, "ann").await.expect("it answers"), accepted);
    }
    assert!(store.remove_occupant(1, 5, "ann").await.expect("it answers"));

    assert!(matches!(store.claim_student("ann", 7).await, Ok(Claim::Held(_))));
    assert!(matches!(store.confirm_student("ann", 6).await, Ok(Claim::Stale)));
    assert!(matches!(store.confirm_student("ann", 8).await, Ok(Claim::Stale)));
    assert!(matches!(store.confirm_student("ann", 7).await, Ok(Claim::Held(_))));
    assert!(!store.assign("ann", 6, None).await.expect("it answers"));
    assert!(!store.assign("ann", 8, None).await.expect("it answers"));
    assert!(store.assign("ann", 7, None).await.expect("it answers"));

    // A student who left and came back is not the one that an old holder knew.
    assert!(store.expel("ann").await.expect("it answers"));
    assert!(matches!(store.confirm_student("ann", 7).await, Ok(Claim::Missing)));
    let again = hostel::model::Student::new("ann".to_owned());
    store.enrol(&[again]).await.expect("it answers");
    assert!(matches!(store.confirm_student("ann", 7).await, Ok(Claim::Stale)));
    assert!(!store.assign("ann", 7, None).await.expect("it answers"));
}

#[tokio::test]
async fn writes_are_refused_to_every_other_token() {
    writes_carry_the_token(local().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_refuses_writes_to_every_other_token() {
    in_mongodb(writes_carry_the_token).await;
}

/// Calls exist for all steps, so the tests above have something to overtake.
#[test]
fn there_are_steps_before_and_after_each_decision() {
    for call in [Call::Reserve, Call::Move, Call::Cancel] {
        for decided in [false, true] {
            assert!(all_steps().any(|(of, _, _, is)| of == call && is == decided));
        }
    }
}
