//! The students of a run: who comes, what each wants, and what goes wrong on the way.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::error::HostelError;
use crate::hostel::{self, Hostel};
use crate::model::Student;
use crate::provider::{Mood, Provider};
use crate::store::{Store, StoreError};

/// Rooms that a student tries.
const ATTEMPTS: u32 = 3;

/// Polls after which a call may be dropped; most calls are over before the last of them.
const POLLS: u32 = 60;

/// How students and things behave. The same plan wants the same.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Plan {
    /// Rooms, numbered from 1.
    pub rooms: u32,
    /// How much goes wrong, from 0 to 1.
    pub chaos: f64,
    /// Decides who wants what, and what goes wrong.
    pub seed: u64,
    /// How long each call to the payment provider takes.
    pub payment_time: Duration,
}

impl Plan {
    /// The provider's part of the chaos.
    #[must_use]
    pub fn mood(&self) -> Mood {
        let Self { chaos, payment_time, .. } = *self;
        Mood { declines: chaos / 4.0, timeouts: chaos / 2.0, latency: payment_time }
    }

    /// Dice of their own for each purpose.
    #[must_use]
    pub fn dice(&self, purpose: u64) -> ChaCha8Rng {
        let mut dice = ChaCha8Rng::seed_from_u64(self.seed);
        dice.set_stream(purpose);
        dice
    }
}

/// A student at the door.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    /// Unique in a run.
    pub number: u32,
    /// Who comes.
    pub student: String,
    /// Nobody else acts for this student, and nobody has before: so what the student is told must be true.
    pub alone: bool,
}

/// Everybody who appears in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cast {
    /// Those who are in the collection `students` at first.
    pub enrolled: Vec<Student>,
    /// Those who come, in any order; some twice, from two places.
    pub visits: Vec<Visit>,
    /// Those who are going to be removed from the collection, unless they have a bed.
    pub expelled: Vec<String>,
}

impl Cast {
    /// The cast of a plan.
    #[must_use]
    pub fn new(students: u32, plan: &Plan) -> Self {
        let mut dice = plan.dice(0);
        let mut cast = Self::default();
        for number in 0..students {
            let student = format!("student-{number}");
            let is_missing = dice.random::<f64>() < plan.chaos / 4.0;
            let comes_twice = dice.random::<f64>() < plan.chaos / 2.0;
            let is_expelled = dice.random::<f64>() < plan.chaos / 4.0;
            if !is_missing {
                cast.enrolled.push(Student::new(student.clone()));
            }
            if is_expelled {
                cast.expelled.push(student.clone());
            }
            let visit = Visit { number, student, alone: !comes_twice };
            if comes_twice {
                cast.visits.push(Visit { number: students + number, ..visit.clone() });
            }
            cast.visits.push(visit);
        }
        cast.visits.shuffle(&mut dice);
        cast.expelled.shuffle(&mut dice);
        cast
    }
}

/// What a student has been told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The visit's number.
    pub number: u32,
    /// Who came.
    pub student: String,
    /// What came of each call.
    pub calls: Vec<String>,
    /// What the student knows in the end.
    pub knows: Knowledge,
}

/// What somebody knows of a student's bed, by what was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Knowledge {
    /// There is one, in this room.
    Bed(u32),
    /// There is none.
    NoBed,
    /// A call was not answered, or somebody else acts for the student too.
    Nothing,
}

/// Lets everybody in at once, and returns when the last has been served.
pub async fn serve<S: Store, P: Provider>(
    hostel: &Hostel<S, P>,
    plan: Plan,
    visits: impl IntoIterator<Item = Visit>,
    answers: &mpsc::UnboundedSender<Answer>,
) {
    let mut at_work = JoinSet::new();
    for visit in visits {
        let (hostel, answers) = (hostel.clone(), answers.clone());
        at_work.spawn(async move {
            // Nobody listens any more when the run is being given up.
            let _ = answers.send(Call::new(&hostel, plan, &visit).make_all().await);
        });
    }
    while let Some(done) = at_work.join_next().await {
        if let Err(panic) = done {
            std::panic::resume_unwind(panic.into_panic());
        }
    }
}

/// Removes students from the collection while they are at the door. Returns how many have gone.
///
/// # Errors
/// When the store fails.
pub async fn expel(
    store: &impl Store,
    plan: &Plan,
    students: &[String],
) -> Result<u64, StoreError> {
    let mut dice = plan.dice(1);
    let mut gone = 0;
    for student in students {
        tokio::time::sleep(Duration::from_millis(dice.random_range(0..20))).await;
        gone += u64::from(store.expel(student).await?);
    }
    Ok(gone)
}

/// A visit on its way.
struct Call<'a, S, P> {
    hostel: &'a Hostel<S, P>,
    plan: Plan,
    visit: &'a Visit,
    dice: ChaCha8Rng,
    calls: Vec<String>,
    knows: Knowledge,
}

impl<'a, S: Store, P: Provider> Call<'a, S, P> {
    fn new(hostel: &'a Hostel<S, P>, plan: Plan, visit: &'a Visit) -> Self {
        let dice = plan.dice(2 + u64::from(visit.number));
        let knows = if visit.alone { Knowledge::NoBed } else { Knowledge::Nothing };
        Self { hostel, plan, visit, dice, calls: Vec::new(), knows }
    }

    async fn make_all(mut self) -> Answer {
        let (mut attempt, mut left) = (0, ATTEMPTS);
        while left > 0 {
            attempt += 1;
            left = match self.reserve(attempt).await {
                Next::Stop => 0,
                Next::TryAnother => left - 1,
                Next::TakeNewKey => left,
            };
        }
        let (changes_mind, moves) = (self.dice.random_bool(0.3), self.dice.random_bool(0.5));
        if let (Knowledge::Bed(room), true) = (self.knows, changes_mind) {
            if moves { self.move_room(room).await } else { self.cancel().await }
        }
        let Self { visit, calls, knows, .. } = self;
        let knows = if visit.alone { knows } else { Knowledge::Nothing };
        Answer { number: visit.number, student: visit.student.clone(), calls, knows }
    }

    async fn reserve(&mut self, attempt: u32) -> Next {
        let (room, key) = self.choose(attempt);
        let hostel = self.hostel;
        let outcome = self.or_drop(hostel.reserve(&self.visit.student, room, &key)).await;
        self.note("reserved", &outcome);
        match outcome {
            Some(Ok(receipt)) => self.knows = Knowledge::Bed(receipt.room),
            Some(Err(HostelError::HasBed { room })) => self.knows = Knowledge::Bed(room),
            Some(Err(HostelError::NoSuchStudent(_))) => self.knows = Knowledge::NoBed,
            Some(Err(HostelError::RoomFull(_))) => {
                self.knows = Knowledge::NoBed;
                return Next::TryAnother;
            }
            Some(Err(HostelError::Refunded(_))) => return Next::TakeNewKey,
            Some(Err(_)) | None => return Next::TryAnother,
        }
        Next::Stop
    }

    async fn move_room(&mut self, from: u32) {
        let (room, key) = self.choose(0);
        let room = if room == from { from % self.plan.rooms + 1 } else { room };
        let hostel = self.hostel;
        let outcome = self.or_drop(hostel.move_room(&self.visit.student, room, &key)).await;
        self.note("moved", &outcome);
        if let Some(Ok(receipt)) = outcome {
            self.knows = Knowledge::Bed(receipt.room);
        }
    }

    async fn cancel(&mut self) {
        let hostel = self.hostel;
        let outcome = self.or_drop(hostel.cancel(&self.visit.student)).await;
        self.note("cancelled", &outcome);
        if let Some(Ok(_)) = outcome {
            self.knows = Knowledge::NoBed;
        }
    }

    /// Students whose process was killed come again, and want the same with the same key.
    fn choose(&self, attempt: u32) -> (u32, String) {
        let Visit { number, student, .. } = self.visit;
        let mut dice = self.plan.dice(1 << 32 | u64::from(*number));
        dice.set_word_pos(u128::from(attempt) * 16);
        (dice.random_range(1..=self.plan.rooms), format!("{student}-{number}-{attempt}"))
    }

    /// Makes a call, and drops it half way if there is chaos: the way a request ends whose client has
    /// gone.
    async fn or_drop<T>(&mut self, call: impl Future<Output = T>) -> Option<T> {
        let is_dropped = self.dice.random::<f64>() < self.plan.chaos / 2.0;
        let polls = self.dice.random_range(1..=POLLS);
        let polls = if is_dropped { Some(polls) } else { None };
        DropAfter { polls, future: Box::pin(call) }.await
    }

    fn note<T>(&mut self, success: &str, outcome: &Option<hostel::Result<T>>) {
        let label = match outcome {
            Some(Ok(_)) => success.to_owned(),
            Some(Err(error)) => error.label(),
            None => "dropped half way".to_owned(),
        };
        self.calls.push(label);
        let is_open = match outcome {
            Some(Ok(_)) => false,
            Some(Err(error)) => error.leaves_open(),
            None => true,
        };
        // Whoever has not heard is not sure, until somebody says so again.
        if is_open || matches!(outcome, Some(Err(HostelError::Refunded(_)))) {
            self.knows = Knowledge::Nothing;
        }
    }
}

/// What a student does after an attempt.
enum Next {
    Stop,
    TryAnother,
    /// The attempt was made before, by a process that was killed.
    TakeNewKey,
}

/// A future that is given up after so many polls.
struct DropAfter<F> {
    polls: Option<u32>,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for DropAfter<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.polls {
            Some(0) => return Poll::Ready(None),
            Some(polls) => *polls -= 1,
            None => {}
        }
        self.future.as_mut().poll(context).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(chaos: f64, seed: u64) -> Plan {
        Plan { rooms: 3, chaos, seed, payment_time: Duration::ZERO }
    }

    #[test]
    fn without_chaos_everybody_comes_once() {
        let Cast { enrolled, visits, expelled } = Cast::new(100, &plan(0.0, 1));
        assert_eq!((enrolled.len(), visits.len(), expelled.len()), (100, 100, 0));
        assert!(visits.iter().all(|visit| visit.alone));
    }

    #[test]
    fn chaos_has_its_way_with_some_and_numbers_are_unique() {
        let Cast { enrolled, mut visits, expelled } = Cast::new(1000, &plan(0.4, 1));
        assert!((850..950).contains(&enrolled.len()), "{}", enrolled.len());
        assert!((1150..1250).contains(&visits.len()), "{}", visits.len());
        assert!((50..150).contains(&expelled.len()), "{}", expelled.len());
        let all = visits.len();
        visits.sort_by_key(|visit| visit.number);
        visits.dedup_by_key(|visit| visit.number);
        assert_eq!(visits.len(), all);
    }

    #[test]
    fn a_seed_decides_who_comes() {
        assert_eq!(Cast::new(50, &plan(0.5, 7)), Cast::new(50, &plan(0.5, 7)));
        assert_ne!(Cast::new(50, &plan(0.5, 7)), Cast::new(50, &plan(0.5, 8)));
    }
}
