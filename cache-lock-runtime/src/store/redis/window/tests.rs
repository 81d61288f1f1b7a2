use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    task::{Context, Wake, Waker},
};

use super::*;

const MICROSECOND: Duration = Duration::from_micros(1);

/// A server at a distance that carries out a request at a time, and as many callers as it likes.
struct Simulation {
    limit: Limit,
    now: Moment,
    distance: Duration,
    service: Duration,
    /// When the server has carried out all that it was sent, and the requests on their way.
    busy_until: Moment,
    in_flight: VecDeque<(Moment, Moment)>,
}

impl Simulation {
    fn new(distance: Duration, service: Duration) -> Self {
        let now = Moment::from_nanos(1_000_000_000);
        let (limit, in_flight) = (Limit::default(), VecDeque::new());
        Self { limit, now, distance, service, busy_until: now, in_flight }
    }

    /// The number of requests that are answered in such a time while others wait to be sent.
    fn run(&mut self, time: Duration) -> u32 {
        let end = self.now.after(time);
        let mut answered = 0;
        while self.now < end {
            while self.in_flight.len() < self.limit.size() {
                let arrives = self.now.after(self.distance / 2);
                self.busy_until = self.busy_until.max(arrives).after(self.service);
                let answer = self.busy_until.after(self.distance / 2);
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

/// A window with no room left, and what it sends goes to the current runtime.
fn full() -> (Arc<Window>, Vec<Permit>) {
    let window = Arc::new(Window::default());
    let mut permits = Vec::new();
    while let Room::Now(permit) = window.enter(Lane::Questions) {
        permits.push(permit);
    }
    (window, permits)
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

#[tokio::test]
async fn request_whose_caller_left_before_its_turn_is_not_sent() {
    let (window, permits) = full();
    let runtime = Handle::current();
    let sent = Arc::new(AtomicBool::new(false));
    let work = {
        let sent = Arc::clone(&sent);
        async move |permit| {
            sent.store(true, Ordering::Relaxed);
            drop(permit);
        }
    };
    let turn = window.turn(&runtime, Lane::Questions, work);
    // Its task is spawned, and has not run.
    drop(permits);
    drop(turn);
    tokio::task::yield_now().await;
    assert!(!sent.load(Ordering::Relaxed));
    assert_eq!(window.state().in_flight, 0);
}

struct Panics(AtomicUsize);

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("a waker that panics");
    }
}

#[tokio::test]
async fn wakers_that_panic_keep_no_caller_of_a_closed_connection_asleep() {
    let (window, permits) = full();
    let runtime = Handle::current();
    let panics = Arc::new(Panics(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&panics));
    let work = async |permit| drop::<Permit>(permit);
    let mut turns: Vec<_> =
        (0..3).map(|_| Box::pin(window.turn(&runtime, Lane::Questions, work))).collect();
    assert!(turns.iter_mut().all(|turn| poll(turn.as_mut(), &waker).is_pending()));
    window.close();
    assert_eq!(panics.0.load(Ordering::Relaxed), turns.len());
    assert!(turns.iter_mut().all(|turn| poll(turn.as_mut(), Waker::noop()) == Poll::Ready(None)));
    drop(permits);
    assert_eq!(window.state().in_flight, 0);
}
