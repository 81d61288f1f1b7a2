use std::time::Duration;

use super::*;
use crate::{key::LockKey, options::OnLost, owner::Owners};

const EXPIRE: Duration = Duration::from_secs(10);
const START: Moment = Moment::from_nanos(1_000_000_000);

fn waiter(patience: Duration) -> Arc<Waiter> {
    waiter_for(EXPIRE, patience)
}

fn waiter_for(expire: Duration, patience: Duration) -> Arc<Waiter> {
    let settings = Settings {
        timeout: patience,
        expire,
        renew: true,
        max_hold: None,
        on_lost: OnLost::Cancel,
        background_release: false,
    };
    Arc::new(Waiter::new(settings, None, START.after(patience), START.after(EXPIRE)))
}

fn scene<'a>(key: &'a LockKey, owners: &'a Arc<Owners>, now: Moment) -> Scene<'a> {
    Scene { key, manager: 1, owners, attempt: EXPIRE / 10, told: true, now }
}

fn busy(listed: bool) -> Result<Reply, Failed> {
    Ok(Reply::Busy { remaining: Some(EXPIRE), ours: true, listed })
}

/// The last question of a waiter whose time is over does not ask to wait. Its token is on the list
/// all the same, from the question before.
#[test]
fn a_token_that_was_listed_leaves_the_list_when_nobody_waits_any_more() {
    let (key, owners) = (LockKey::from("key"), Arc::new(Owners::new()));
    let at = |now| scene(&key, &owners, now);
    let mut place = Place::new(1);
    let mut effects = Effects::default();
    place.join(&at(START), &waiter(Duration::from_millis(500)), &mut effects);
    let token = effects.ask.take().expect("a question").token;
    place.answered(&at(START), &token, busy(true), &mut effects);

    let due = place.due(&at(START)).expect("a timer");
    place.look(&at(due), &mut effects);
    let again = effects.ask.take().expect("another question");
    assert!(again.listed && !again.wait, "{again:?}");
    place.answered(&at(due), &token, busy(false), &mut effects);
    assert_eq!(effects.release.map(|ended| ended.token), Some(token));
    assert!(place.is_idle());
}

/// The lock came with an answer, though the waiter that leads by now asks for another lease than the
/// one that led when it was asked.
#[test]
fn a_lock_that_was_asked_for_is_not_counted_as_handed_over() {
    let (key, owners) = (LockKey::from("key"), Arc::new(Owners::new()));
    let scene = scene(&key, &owners, START);
    let mut place = Place::new(1);
    let mut effects = Effects::default();
    let (first, second) = (waiter(EXPIRE), waiter_for(EXPIRE + EXPIRE / 100, EXPIRE));
    place.join(&scene, &first, &mut effects);
    let token = effects.ask.take().expect("a question").token;
    place.join(&scene, &second, &mut effects);
    place.leave(&scene, &first, &mut effects);

    let numbers = crate::fence::Numbers::new(1, 2);
    let got = Reply::Got { numbers, sent_at: START, others: false };
    place.answered(&scene, &token, Ok(got), &mut effects);
    assert!(second.leave().is_some(), "it was handed the lock");
    assert!(!effects.handed_over);
}

/// What was said to those who have gone is no answer to the question that is out.
#[test]
fn an_old_refusal_is_not_told_to_who_comes_later() {
    let (key, owners) = (LockKey::from("key"), Arc::new(Owners::new()));
    let at = |now| scene(&key, &owners, now);
    let mut place = Place::new(1);
    let mut effects = Effects::default();
    let first = waiter(EXPIRE);
    place.join(&at(START), &first, &mut effects);
    let token = effects.ask.take().expect("a question").token;
    place.answered(&at(START), &token, busy(true), &mut effects);
    let due = place.due(&at(START)).expect("a timer");
    place.look(&at(due), &mut effects);
    place.leave(&at(due), &first, &mut effects);

    let second = waiter(Duration::ZERO);
    place.join(&at(due), &second, &mut effects);
    let told = place.give_up(&at(due), &second, &mut effects);
    assert!(told.is_none(), "it waits for the answer: {told:?}");
}

/// Whoever is on no list needs a moment in which the lock is free.
#[test]
fn a_turn_that_comes_soon_is_not_taken_at_once() {
    let (key, owners) = (LockKey::from("key"), Arc::new(Owners::new()));
    let scene = scene(&key, &owners, START);
    let mut place = Place::new(1);
    let mut effects = Effects::default();
    place.join(&scene, &waiter(EXPIRE), &mut effects);
    let token = effects.ask.take().expect("a question").token;
    place.answered(&scene, &token, busy(true), &mut effects);

    place.left_free(&scene, token, &mut effects);
    assert!(effects.ask.is_none());
    let pause = START.until(place.due(&scene).expect("a timer"));
    assert!((2..5).contains(&pause.as_millis()), "{pause:?}");
}
