use std::time::Duration;

use super::*;
use crate::{
    fence::Numbers,
    key::LockKey,
    options::{OnLost, Settings},
    owner::TokenSource,
    protocol::waiter_queue::WaiterQueue,
};

const EXPIRE: Duration = Duration::from_secs(10);
const START: Instant = Instant::from_nanos(1_000_000_000);

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
    Arc::new(Waiter::new(settings, None, START + patience, START + EXPIRE))
}

/// A key on its own, with all effects of its events so far.
struct Key {
    name: LockKey,
    tokens: Arc<TokenSource>,
    queue: KeyQueue,
    effects: Effects,
}

impl Key {
    fn new() -> Self {
        let (name, tokens) = (LockKey::from("key"), Arc::new(TokenSource::new()));
        Self { name, tokens, queue: KeyQueue::new(1), effects: Effects::default() }
    }

    fn at<R>(&mut self, now: Instant, event: impl FnOnce(&mut Machine<'_>) -> R) -> R {
        let Self { name, tokens, queue, effects } = self;
        let env = Env { key: name, manager: 1, tokens, attempt: EXPIRE / 10, told: true, now };
        event(&mut Machine { queue, env: &env, effects })
    }

    fn request(&mut self) -> AcquireRequest {
        self.effects.acquire.take().expect("a request")
    }

    fn due(&mut self) -> Instant {
        self.at(START, |machine| machine.due()).expect("a timer")
    }
}

fn busy(listed: bool) -> Result<AcquireResponse, AcquireError> {
    Ok(AcquireResponse::Busy { remaining: Some(EXPIRE), ours: true, listed })
}

/// The last request of a waiter whose time is over does not ask to wait. An earlier request has put its
/// token on the list.
#[test]
fn a_listed_token_leaves_the_list_with_the_last_waiter() {
    let mut key = Key::new();
    key.at(START, |machine| machine.join(&waiter(Duration::from_millis(500))));
    let token = key.request().token;
    key.at(START, |machine| machine.answered(&token, busy(true)));

    let due = key.due();
    key.at(due, |machine| machine.on_timer());
    let again = key.request();
    assert!(matches!(again.kind, RequestKind::Again) && !again.wait, "{again:?}");
    key.at(due, |machine| machine.answered(&token, busy(false)));
    assert_eq!(key.effects.release.map(|release| release.token), Some(token));
    assert!(key.queue.is_idle());
}

/// The lock comes with an answer, and the waiter that leads by then asks for another lease than the one
/// that led when the request was sent.
#[test]
fn a_lock_that_was_asked_for_does_not_count_as_handed_over() {
    let mut key = Key::new();
    let (first, second) = (waiter(EXPIRE), waiter_for(EXPIRE + EXPIRE / 100, EXPIRE));
    key.at(START, |machine| machine.join(&first));
    let token = key.request().token;
    key.at(START, |machine| machine.join(&second));
    key.at(START, |machine| machine.leave(&first));

    let numbers = Numbers::new(1, 2);
    let got = AcquireResponse::Got { numbers, sent_at: START, others: false };
    key.at(START, |machine| machine.answered(&token, Ok(got)));
    assert!(second.leave().is_some(), "it was handed the lock");
    assert!(!key.effects.handed_over);
}

/// A refusal told to waiters that have gone does not answer the request that is out.
#[test]
fn a_waiter_that_comes_later_is_not_told_an_old_refusal() {
    let mut key = Key::new();
    let first = waiter(EXPIRE);
    key.at(START, |machine| machine.join(&first));
    let token = key.request().token;
    key.at(START, |machine| machine.answered(&token, busy(true)));
    let due = key.due();
    key.at(due, |machine| machine.on_timer());
    key.at(due, |machine| machine.leave(&first));

    let second = waiter(Duration::ZERO);
    key.at(due, |machine| machine.join(&second));
    let told = key.at(due, |machine| machine.give_up(&second));
    assert!(told.is_none(), "it waits for the answer: {told:?}");
}

/// Callers on no list need a moment in which the lock is free.
#[test]
fn the_first_of_the_list_does_not_take_a_yielded_lock_at_once() {
    let mut key = Key::new();
    key.at(START, |machine| machine.join(&waiter(EXPIRE)));
    let token = key.request().token;
    key.at(START, |machine| machine.answered(&token, busy(true)));

    key.at(START, |machine| machine.yielded(token));
    assert!(key.effects.acquire.is_none());
    let pause = key.due() - START;
    assert!((2..5).contains(&pause.as_millis()), "{pause:?}");
}

/// Has so many waiters give up.
fn all_give_up(count: u64) {
    let mut key = Key::new();
    let patience = |number| Duration::from_millis(number * 7919 % 1000);
    let waiters: Vec<_> = (0..count).map(|number| waiter(patience(number))).collect();
    for waiter in &waiters {
        key.at(START, |machine| machine.join(waiter));
        if let Some(request) = key.effects.acquire.take() {
            key.at(START, |machine| machine.answered(&request.token, busy(true)));
        }
    }
    let end = START + EXPIRE / 10;
    for (number, waiter) in waiters.iter().enumerate() {
        // Some are told, and some are dropped.
        if number % 2 == 0 {
            drop(key.at(end, |machine| machine.give_up(waiter)));
        } else {
            key.at(end, |machine| machine.leave(waiter));
        }
    }
    assert!(key.queue.is_idle());
}

/// If each waiter that leaves took a step for each other waiter, this would last for minutes.
#[test]
fn many_waiters_that_give_up_together_do_so_in_few_steps() {
    let (sender, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        all_give_up(200_000);
        sender.send(()).expect("the test waits");
    });
    done.recv_timeout(Duration::from_secs(60)).expect("they have left");
}

/// Waiters that leave from the middle keep the order of the others, and a waiter that leaves twice takes no
/// other with it.
#[test]
fn waiters_that_leave_keep_the_order_of_the_others() {
    let mut queue = WaiterQueue::default();
    let waiters: Vec<_> = (0..100).map(|at| waiter(Duration::from_millis(500 - at))).collect();
    for waiter in &waiters {
        queue.push_back(waiter);
    }
    let gone = |at: usize| at % 3 == 1;
    for (_, waiter) in waiters.iter().enumerate().rev().filter(|(at, _)| gone(*at)) {
        queue.remove(waiter);
        queue.remove(waiter);
    }
    // The waiters of a later queue have the same numbers.
    let mut later = WaiterQueue::default();
    let other = waiter(EXPIRE);
    later.push_back(&other);
    later.remove(&waiters[0]);
    assert_eq!(later.len(), 1);

    let left: Vec<_> =
        std::iter::from_fn(|| queue.pop_front().map(|waiter| waiter.patience)).collect();
    let staying = waiters.iter().enumerate().filter(|(at, _)| !gone(*at));
    let expected: Vec<_> = staying.map(|(_, waiter)| waiter.patience).collect();
    assert_eq!(left, expected);
    assert!(!queue.is_patient(Instant::from_nanos(0)), "none is left by patience either");
}
