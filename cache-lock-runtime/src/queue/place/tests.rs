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
    Scene { key, seat: None, manager: 1, owners, attempt: EXPIRE / 10, told: true, now }
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

/// Has a place of so many waiters, of whom each gives up.
fn all_give_up(count: u64) {
    let (key, owners) = (LockKey::from("key"), Arc::new(Owners::new()));
    let at = |now| scene(&key, &owners, now);
    let mut place = Place::new(1);
    let mut effects = Effects::default();
    let patience = |number| Duration::from_millis(number * 7919 % 1000);
    let waiters: Vec<_> = (0..count).map(|number| waiter(patience(number))).collect();
    for waiter in &waiters {
        place.join(&at(START), waiter, &mut effects);
        if let Some(question) = effects.ask.take() {
            place.answered(&at(START), &question.token, busy(true), &mut effects);
        }
    }
    let end = START.after(EXPIRE / 10);
    for (number, waiter) in waiters.iter().enumerate() {
        // Some are told, and some are dropped.
        if number % 2 == 0 {
            drop(place.give_up(&at(end), waiter, &mut effects));
        } else {
            place.leave(&at(end), waiter, &mut effects);
        }
    }
    assert!(place.is_idle());
}

/// Each that leaves holds up all keys. If it takes a step for each waiter, this lasts
/// for minutes.
#[test]
fn many_waiters_that_give_up_together_do_so_in_few_steps() {
    let (sender, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        all_give_up(200_000);
        sender.send(()).expect("the test waits");
    });
    done.recv_timeout(Duration::from_secs(60)).expect("they have left");
}

/// Those who leave from the middle do not change the order of the others, and one that has left before
/// takes nobody with it.
#[test]
fn waiters_that_leave_keep_the_order_of_the_others() {
    let mut line = Line::default();
    let waiters: Vec<_> = (0..100).map(|at| waiter(Duration::from_millis(500 - at))).collect();
    for waiter in &waiters {
        line.push_back(waiter);
    }
    let gone = |at: usize| at % 3 == 1;
    for (_, waiter) in waiters.iter().enumerate().rev().filter(|(at, _)| gone(*at)) {
        line.remove(waiter);
        line.remove(waiter);
    }
    // Those of a later line have the same numbers.
    let mut later = Line::default();
    let other = waiter(EXPIRE);
    later.push_back(&other);
    later.remove(&waiters[0]);
    assert_eq!(later.len(), 1);

    let left: Vec<_> =
        std::iter::from_fn(|| line.pop_front().map(|waiter| waiter.patience)).collect();
    let staying = waiters.iter().enumerate().filter(|(at, _)| !gone(*at));
    let expected: Vec<_> = staying.map(|(_, waiter)| waiter.patience).collect();
    assert_eq!(left, expected);
    assert!(!line.is_patient(Moment::from_nanos(0)), "nobody is left by patience either");
}
