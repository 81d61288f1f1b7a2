//! A process may end after any step, and a call at any await; a recovery settles what is left.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use hostel::error::HostelError;
use hostel::hostel::{Hostel, Step};
use hostel::provider::{LocalProvider, Provider};
use hostel::settle::{Recovery, Settled};
use hostel::store::{LocalStore, Store};

use crate::house::{in_mongodb, local, look, room_of, sound, step_by_step, steps_of, stop_at};

/// What a student does, who has a bed in room 2 before, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Reserve,
    Move,
    Cancel,
}

pub(crate) const CALLS: [Call; 3] = [Call::Reserve, Call::Move, Call::Cancel];

impl Call {
    pub(crate) fn before(self) -> Option<u32> {
        if self == Self::Reserve { None } else { Some(2) }
    }

    pub(crate) fn after(self) -> Option<u32> {
        if self == Self::Cancel { None } else { Some(1) }
    }

    /// With keys of its own for each `round`.
    pub(crate) async fn prepare<S: Store, P: Provider>(self, hostel: &Hostel<S, P>, round: usize) {
        if let Some(room) = self.before() {
            hostel.reserve("ann", room, &format!("a-{round}")).await.expect("it is free");
        }
    }

    pub(crate) async fn make<S: Store, P: Provider>(
        self,
        hostel: &Hostel<S, P>,
        round: usize,
    ) -> Result<(), HostelError> {
        let key = format!("b-{self:?}-{round}");
        match self {
            Self::Reserve => hostel.reserve("ann", 1, &key).await.map(drop),
            Self::Move => hostel.move_room("ann", 1, &key).await.map(drop),
            Self::Cancel => hostel.cancel("ann").await.map(drop),
        }
    }

    /// The steps, and whether the decision has been taken after each.
    fn steps(self) -> Vec<(Step, bool)> {
        use Step::*;
        let take = [Requested, Authorised, MarkedAuthorised, RoomClaimed, Confirmed, BedTaken];
        let free = [RoomClaimed, Confirmed, BedFreed, Refunded, Closed];
        let (undecided, decided) = match self {
            Self::Reserve => (vec![Claimed], vec![Assigned, Captured, Closed]),
            // The payment for the old bed comes first, by its key.
            Self::Move => (
                vec![Claimed, Reopened],
                [&[Assigned][..], &free[..], &[Captured, Closed][..]].concat(),
            ),
            Self::Cancel => (vec![Claimed, Reopened], [&[Unassigned][..], &free[..]].concat()),
        };
        let take = if self == Self::Cancel { &[][..] } else { &take[..] };
        let undecided = undecided.into_iter().chain(take.iter().copied());
        let undecided = undecided.map(|step| (step, false));
        undecided.chain(decided.into_iter().map(|step| (step, true))).collect()
    }
}

/// Each step of each call: which it is, and whether the decision has been taken.
pub(crate) fn all_steps() -> impl Iterator<Item = (Call, usize, Step, bool)> {
    CALLS.into_iter().flat_map(|call| {
        let steps = call.steps().into_iter().enumerate();
        steps.map(move |(index, (step, is_decided))| (call, index, step, is_decided))
    })
}

pub(crate) async fn recover<S: Store, P: Provider>(hostel: &Hostel<S, P>) -> Settled {
    let Recovery { settled, left } = hostel.recover().await.expect("it can be read");
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(
        hostel.recover().await.expect("it can be read"),
        Recovery::default(),
        "once is enough"
    );
    settled
}

#[tokio::test]
async fn calls_do_these_steps() {
    for call in CALLS {
        let hostel = local().await;
        call.prepare(&hostel, 0).await;
        let (slow, mut reached) = step_by_step(&hostel);
        let expected: Vec<Step> = call.steps().into_iter().map(|(step, _)| step).collect();
        assert_eq!(steps_of(call.make(&slow, 0), &mut reached).await, expected, "{call:?}");
        assert_eq!(room_of(&hostel, "ann").await, call.after(), "{call:?}");
    }
}

async fn a_crash_after_any_step<S: Store, P: Provider>(hostel: Hostel<S, P>) {
    for (round, (call, index, step, is_decided)) in all_steps().enumerate() {
        call.prepare(&hostel, round).await;
        let (slow, mut reached) = step_by_step(&hostel);
        let mut crashing = Box::pin(call.make(&slow, round));
        let Ok(stopped) = stop_at(&mut crashing, &mut reached, index).await else {
            panic!("{call:?} ends before {step:?}");
        };
        assert_eq!(stopped.step, step, "{call:?}");
        drop(crashing);

        recover(&hostel).await;
        let room = if is_decided { call.after() } else { call.before() };
        assert_eq!(room_of(&hostel, "ann").await, room, "{call:?} after {step:?}");
        if room.is_some() {
            hostel.cancel("ann").await.expect("there is one");
        }
    }
}

#[tokio::test]
async fn a_crash_after_any_step_is_settled() {
    a_crash_after_any_step(local().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_after_any_step_is_settled_in_a_database() {
    in_mongodb(a_crash_after_any_step).await;
}

/// The next call of the student does as well as a recovery.
#[tokio::test]
async fn the_next_call_settles_what_a_crash_left() {
    for (index, (step, is_decided)) in Call::Reserve.steps().into_iter().enumerate() {
        let hostel = local().await;
        let (slow, mut reached) = step_by_step(&hostel);
        let mut crashing = Box::pin(Call::Reserve.make(&slow, 0));
        assert!(stop_at(&mut crashing, &mut reached, index).await.is_ok(), "{step:?}");
        drop(crashing);
        let again = hostel.reserve("ann", 2, "other").await;
        assert_eq!(again.is_err(), is_decided, "{step:?}: {again:?}");
        let room = if is_decided { 1 } else { 2 };
        assert_eq!(room_of(&hostel, "ann").await, Some(room), "{step:?}");
    }
}

#[tokio::test]
async fn what_a_recovery_says_is_what_it_has_done() {
    let hostel = local().await;
    for (student, room, step) in [("ann", 1, Step::Assigned), ("bob", 2, Step::BedTaken)] {
        let (slow, mut reached) = step_by_step(&hostel);
        let mut crashing = Box::pin(slow.reserve(student, room, student));
        let steps = Call::Reserve.steps();
        let index = steps.iter().position(|(of, _)| *of == step).expect("it is a step");
        assert!(stop_at(&mut crashing, &mut reached, index).await.is_ok());
    }
    let violations = look(&hostel).await.audit().violations;
    assert!(!violations.is_empty(), "a crash shows until it is settled");
    assert_eq!(recover(&hostel).await, Settled { captured: 1, refunded: 1 });
    assert_eq!(sound(&look(&hostel).await), [(1, vec!["ann".to_owned()]), (2, vec![])]);
}

/// A call that is given up after so many polls.
struct Polls<F>(Pin<Box<F>>, u32);

impl<F: Future> Future for Polls<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.1 == 0 {
            return Poll::Ready(None);
        }
        self.1 -= 1;
        self.0.as_mut().poll(context).map(Some)
    }
}

#[tokio::test]
async fn a_call_can_be_dropped_at_every_await() {
    for call in CALLS {
        let mut polls = 0;
        loop {
            polls += 1;
            let hostel: Hostel<LocalStore, LocalProvider> = local().await;
            call.prepare(&hostel, 0).await;
            let outcome = Polls(Box::pin(call.make(&hostel, 0)), polls).await;
            recover(&hostel).await;
            let room = room_of(&hostel, "ann").await;
            assert!([call.before(), call.after()].contains(&room), "{call:?}, {polls} polls");
            if outcome.is_some() {
                assert_eq!(room, call.after(), "{call:?}");
                break;
            }
        }
        assert!(polls > 20, "{call:?} has awaits: {polls}");
    }
}
