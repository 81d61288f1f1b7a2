use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::Method;
use rand::Rng;
use tokio::sync::Barrier;

use crate::client::{Answer, Client, ClientError};
use crate::domain::UserId;

/// What a client can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Race,
    List,
    Book,
    Cancel,
}

/// The slots, and who was told to have them: a booking counts from its answer on, a cancellation
/// from its request on. So two who have one slot at the same time were both told so.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) ids: Vec<String>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    owners: Vec<Option<UserId>>,
    /// Something was asked of it and not answered, so anybody may have it.
    open: Vec<bool>,
    double: Vec<String>,
}

impl Slots {
    pub(super) fn new(ids: Vec<String>) -> Self {
        let state = State {
            owners: vec![None; ids.len()],
            open: vec![false; ids.len()],
            double: Vec::new(),
        };
        Self { ids, state: Mutex::new(state) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn booked(&self, slot: usize, user: UserId) {
        let mut state = self.state();
        if let Some(other) = state.owners[slot].replace(user)
            && other != user
            && !state.open[slot]
        {
            let id = &self.ids[slot];
            state.double.push(format!("{id} was booked for {user} while {other} had it"));
        }
    }

    fn cancelling(&self, slot: usize) {
        self.state().owners[slot] = None;
    }

    fn left_open(&self, slot: usize) {
        self.state().open[slot] = true;
    }

    /// Each slot, who was told last to have it, and whether that is open.
    pub(super) fn told(&self) -> Vec<(String, Option<UserId>, bool)> {
        let state = self.state();
        let all = self.ids.iter().zip(&state.owners).zip(&state.open);
        all.map(|((id, owner), open)| (id.clone(), *owner, *open)).collect()
    }

    /// Slots that two had at once.
    pub(super) fn double(&self) -> Vec<String> {
        self.state().double.clone()
    }
}

/// A client, and what it met.
pub(super) struct Booker {
    number: usize,
    pub(super) user: UserId,
    pub(super) token: String,
    address: SocketAddr,
    connection: Option<Client>,
    /// The slot that it got in the race.
    pub(super) won: Option<usize>,
    /// Each answer: to what, its status (0 for none), and how long it took in microseconds.
    pub(super) answers: Vec<(Operation, u16, u64)>,
}

impl Booker {
    pub(super) fn new(number: usize, user: UserId, token: String, address: SocketAddr) -> Self {
        Self { number, user, token, address, connection: None, won: None, answers: Vec::new() }
    }

    pub(super) async fn work(
        mut self,
        slots: Arc<Slots>,
        doors: Arc<Barrier>,
        seconds: u16,
    ) -> Self {
        self.connection = Client::connect(self.address).await.ok();
        doors.wait().await;
        self.race(&slots).await;
        doors.wait().await;
        let end = Instant::now() + Duration::from_secs(seconds.into());
        if let Some(slot) = self.won.filter(|_| seconds > 0) {
            self.cancel(&slots, slot).await;
        }
        while Instant::now() < end {
            self.step(&slots).await;
        }
        self
    }

    /// Asks for one slot until it is told yes or no.
    async fn race(&mut self, slots: &Slots) {
        let slot = self.number % slots.ids.len();
        loop {
            match self.book(Operation::Race, slots, slot).await {
                200 | 201 => {
                    self.won = Some(slot);
                    return;
                }
                409 => return,
                // Somebody is booking it, or a server is away: later, and not all at once.
                _ => {
                    let pause = rand::rng().random_range(50..1000);
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
            }
        }
    }

    /// Lists the slots, books one, and gives it back if it got it.
    async fn step(&mut self, slots: &Slots) {
        self.call(Operation::List, Method::GET, "/slots?limit=50").await;
        let slot = rand::rng().random_range(0..slots.ids.len());
        if matches!(self.book(Operation::Book, slots, slot).await, 200 | 201) {
            self.cancel(slots, slot).await;
        }
    }

    async fn book(&mut self, operation: Operation, slots: &Slots, slot: usize) -> u16 {
        let path = format!("/slots/{}/book", slots.ids[slot]);
        let status = self.call(operation, Method::POST, &path).await;
        match status {
            200 | 201 => slots.booked(slot, self.user),
            0 | 500.. => slots.left_open(slot),
            _ => {}
        }
        status
    }

    async fn cancel(&mut self, slots: &Slots, slot: usize) {
        slots.cancelling(slot);
        let path = format!("/slots/{}/booking", slots.ids[slot]);
        if self.call(Operation::Cancel, Method::DELETE, &path).await != 200 {
            slots.left_open(slot);
        }
    }

    async fn call(&mut self, operation: Operation, method: Method, path: &str) -> u16 {
        let began = Instant::now();
        let status = match self.try_call(method, path).await {
            Ok(answer) => answer.status.as_u16(),
            Err(_) => {
                self.connection = None;
                0
            }
        };
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.answers.push((operation, status, took));
        status
    }

    async fn try_call(&mut self, method: Method, path: &str) -> Result<Answer, ClientError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(Client::connect(self.address).await?),
        };
        connection.call(method, path, Some(&self.token), None).await
    }
}
