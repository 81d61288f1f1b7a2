use std::{
    collections::VecDeque,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::Wake,
};

use super::*;

const MICROSECOND: Duration = Duration::from_micros(1);

/// A server at a distance that carries out a request at a time, and as many callers as it likes.
struct Simulation {
    limit: Limit,
    now: Instant,
    distance: Duration,
    service: Duration,
    /// When the server has carried out all that it was sent, and the requests on their way.
    busy_until: Instant,
    in_flight: VecDeque<(Instant, Instant)>,
}

impl Simulation {
    fn new(distance: Duration, service: Duration) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let (limit, in_flight) = (Limit::default(), VecDeque::new());
        Self { limit, now, distance, service, busy_until: now, in_flight }
    }

    /// The number of requests that are answered in such a time while others wait to be sent.
    fn run(&mut self, time: Duration) -> u32 {
        let end = self.now + time;
        let mut answered = 0;
        while self.now < end {
            while self.in_flight.len() < self.limit.size() {
                let arrives = self.now + self.distance / 2;
                self.busy_until = self.busy_until.max(arrives) + self.service;
                let answer = self.busy_until + self.distance / 2;
                self.in_flight.push_back((self.now, answer));
            }
            let Some((sent, answer)) = self.in_flight.pop_front() else { break };
            self.now = answer;
            self.limit.answered(self.now, sent, self.in_flight.len(), true);
            answered += 1;
        }
        answered
    }
}

#[test]
fn a_near_server_is_kept_busy_and_not_queued_up() {
    let mut near = Simulation::new(40 * MICROSECOND, 10 * MICROSECOND);
    near.run(Duration::from_secs(1));
    let answered = near.run(Duration::from_secs(60));
    assert!(answered > 5_900_000, "{answered} of 6,000,000");
    assert!(near.limit.size <= 2 * MANY, "{:?}", near.limit);
}

#[test]
fn a_far_server_is_kept_busy() {
    let mut far = Simulation::new(Duration::from_millis(100), 10 * MICROSECOND);
    far.run(Duration::from_secs(3));
    let answered = far.run(Duration::from_secs(60));
    assert!(answered > 5_000_000, "{answered} of 6,000,000");
    let at_once = 10_000;
    assert!(far.limit.size < 2 * at_once, "{:?}", far.limit);
}

#[test]
fn a_server_that_becomes_slow_is_not_queued_up() {
    let mut server = Simulation::new(40 * MICROSECOND, 10 * MICROSECOND);
    server.run(Duration::from_secs(1));
    server.service = Duration::from_millis(5);
    server.run(Duration::from_secs(60));
    let wait = server.service * u32::try_from(server.limit.size).unwrap_or(u32::MAX);
    assert!(wait < Duration::from_millis(150), "{wait:?}, {:?}", server.limit);
}

/// A window with no room left.
fn full() -> (Arc<Window>, Vec<Permit>) {
    let driver = Arc::new(Driver::new());
    driver.start(std::future::pending).expect("a thread");
    let window = Window::new(driver);
    let mut permits = Vec::new();
    while let Room::Now(permit) = window.enter(Lane::Acquires) {
        permits.push(permit);
    }
    (window, permits)
}

fn poll(turn: &mut Admission, waker: &Waker) -> Poll<Option<Permit>> {
    Pin::new(turn).poll(&mut Context::from_waker(waker))
}

fn has_come(turn: &mut Admission) -> bool {
    matches!(poll(turn, Waker::noop()), Poll::Ready(Some(_)))
}

#[test]
fn releases_come_before_questions_and_each_in_the_order_of_their_coming() {
    let (window, mut permits) = full();
    let lanes = [Lane::Acquires, Lane::Releases, Lane::Acquires, Lane::Releases];
    let mut turns = lanes.map(|lane| window.turn(lane));
    assert!(turns.iter_mut().all(|turn| !has_come(turn)));
    for next in [1, 3, 0, 2] {
        permits.pop();
        let Poll::Ready(Some(permit)) = poll(&mut turns[next], Waker::noop()) else {
            panic!("it is the turn of {next}");
        };
        permits.push(permit);
        assert!(turns.iter_mut().all(|turn| turn.serial.is_none() || !has_come(turn)));
    }
}

#[test]
fn caller_that_leaves_gives_its_turn_to_the_next() {
    let (window, mut permits) = full();
    let mut turns = [(); 3].map(|()| window.turn(Lane::Acquires));
    assert!(turns.iter_mut().all(|turn| !has_come(turn)));
    let [first, second, mut third] = turns;
    drop(second);
    permits.pop();
    drop(first);
    assert!(has_come(&mut third));
    drop(permits);
    assert_eq!(window.state.lock().in_flight, 0);
}

struct Tells(mpsc::Sender<()>);

impl Wake for Tells {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

#[test]
fn caller_that_is_not_polled_keeps_no_room_and_stays_first_in_line() {
    let (window, mut permits) = full();
    let (mut unpolled, mut next) = (window.turn(Lane::Acquires), window.turn(Lane::Acquires));
    let (sender, woken) = mpsc::channel();
    assert!(poll(&mut unpolled, Waker::noop()).is_pending());
    assert!(poll(&mut next, &Waker::from(Arc::new(Tells(sender)))).is_pending());
    // The turn of the first, which stays unpolled.
    permits.pop();
    woken.recv_timeout(Duration::from_secs(30)).expect("the turn of the next");
    let mut last = window.turn(Lane::Acquires);
    assert!(!has_come(&mut unpolled) && !has_come(&mut last));
    assert!(has_come(&mut next), "what it was given is given back at once");
    assert!(has_come(&mut unpolled), "it has come before the last");
    assert!(has_come(&mut last));
    drop((unpolled, next, last, permits));
    assert_eq!(window.state.lock().in_flight, 0);
}

#[test]
fn caller_that_is_skipped_keeps_no_room_while_others_take_their_turns() {
    let (window, mut permits) = full();
    let mut unpolled = window.turn(Lane::Acquires);
    assert!(!has_come(&mut unpolled));
    let end = Instant::now() + Duration::from_secs(30);
    permits.pop();
    while window.state.lock().turns.values().len() == 1 {
        let mut next = window.turn(Lane::Acquires);
        assert!(!has_come(&mut next), "there is room for one, and it is kept");
        permits.pop();
        std::thread::sleep(Duration::from_millis(1));
        match poll(&mut next, Waker::noop()) {
            Poll::Ready(Some(permit)) => permits.push(permit),
            // The room of the unpolled turn was taken back, and given to this one.
            _ => break,
        }
        assert!(Instant::now() < end, "it keeps its room");
    }
    drop((unpolled, permits));
    assert_eq!(window.state.lock().in_flight, 0);
}

struct Panics(AtomicUsize);

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("a waker that panics");
    }
}

#[test]
fn wakers_that_panic_keep_no_caller_of_a_closed_connection_asleep() {
    let (window, permits) = full();
    let panics = Arc::new(Panics(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&panics));
    let mut turns = [(); 3].map(|()| window.turn(Lane::Acquires));
    assert!(turns.iter_mut().all(|turn| poll(turn, &waker).is_pending()));
    window.close();
    assert_eq!(panics.0.load(Ordering::Relaxed), turns.len());
    let closed = |turn| matches!(poll(turn, Waker::noop()), Poll::Ready(None));
    assert!(turns.iter_mut().all(closed));
    drop(permits);
    assert_eq!(window.state.lock().in_flight, 0);
}
