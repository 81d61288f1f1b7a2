//! Many students at once, and locks that exclude nobody: with fences the hostel stays sound, without
//! them it does not, and the audit says so.

use std::time::Duration;

use hostel::hostel::Hostel;
use hostel::model::{Bed, Payment, PaymentState, Room, Student};
use hostel::provider::{LocalProvider, MoodyProvider, Provider};
use hostel::store::{Claim, LocalStore, Result, Store};
use hostel::visits::{Cast, Plan, serve};
use tokio::sync::mpsc;

use crate::crashes::recover;
use crate::house::{look, sound, without_exclusion};

/// A store without fences: all tokens are the same to it.
#[derive(Debug, Clone)]
struct Unfenced(LocalStore);

impl Store for Unfenced {
    async fn add_rooms(&self, rooms: &[Room]) -> Result<()> {
        self.0.add_rooms(rooms).await
    }
    async fn enrol(&self, students: &[Student]) -> Result<()> {
        self.0.enrol(students).await
    }
    async fn expel(&self, student: &str) -> Result<bool> {
        self.0.expel(student).await
    }
    async fn claim_room(&self, number: u32, _: i64) -> Result<Claim<Room>> {
        self.0.claim_room(number, 0).await
    }
    async fn claim_student(&self, id: &str, _: i64) -> Result<Claim<Student>> {
        self.0.claim_student(id, 0).await
    }
    async fn confirm_student(&self, id: &str, _: i64) -> Result<Claim<Student>> {
        self.0.confirm_student(id, 0).await
    }
    async fn claim_payment(&self, key: &str, _: i64) -> Result<Claim<Payment>> {
        self.0.claim_payment(key, 0).await
    }
    async fn add_occupant(&self, number: u32, _: i64, student: &str) -> Result<bool> {
        self.0.add_occupant(number, 0, student).await
    }
    async fn remove_occupant(&self, number: u32, _: i64, student: &str) -> Result<bool> {
        self.0.remove_occupant(number, 0, student).await
    }
    async fn assign(&self, student: &str, _: i64, bed: Option<Bed<'_>>) -> Result<bool> {
        self.0.assign(student, 0, bed).await
    }
    async fn add_payment(&self, payment: &Payment) -> Result<bool> {
        self.0.add_payment(&Payment { fence: 0, ..payment.clone() }).await
    }
    async fn set_payment(
        &self,
        key: &str,
        _: i64,
        state: PaymentState,
        open: bool,
    ) -> Result<bool> {
        self.0.set_payment(key, 0, state, open).await
    }
    async fn room(&self, number: u32) -> Result<Option<Room>> {
        self.0.room(number).await
    }
    async fn payment(&self, key: &str) -> Result<Option<Payment>> {
        self.0.payment(key).await
    }
    async fn open_payments(&self, student: Option<&str>) -> Result<Vec<Payment>> {
        self.0.open_payments(student).await
    }
    async fn rooms(&self) -> Result<Vec<Room>> {
        self.0.rooms().await
    }
    async fn students(&self) -> Result<Vec<Student>> {
        self.0.students().await
    }
    async fn payments(&self) -> Result<Vec<Payment>> {
        self.0.payments().await
    }
}

/// Lets 200 students loose on 4 rooms, which have beds for few or for all, so that some can move. They are
/// spread over `managers` of locks that know nothing of each other.
async fn race<S: Store>(
    store: S,
    managers: usize,
    seed: u64,
) -> Hostel<S, MoodyProvider<LocalProvider>> {
    let plan = Plan { rooms: 4, chaos: 0.3, seed, payment_time: Duration::ZERO };
    let cast = Cast::new(200, &plan);
    let capacity = if seed.is_multiple_of(2) { 10 } else { 60 };
    let rooms: Vec<Room> = (1..=4).map(|number| Room::new(number, capacity, 900)).collect();
    store.add_rooms(&rooms).await.expect("it is there");
    store.enrol(&cast.enrolled).await.expect("it is there");
    let provider = MoodyProvider::new(LocalProvider::default(), plan.mood(), seed);
    let locks = cache_lock::LockManager::in_memory();
    let hostel = Hostel { name: "race".to_owned(), locks, store, provider, steps: None };

    let (answers, mut answered) = mpsc::unbounded_channel();
    let mut serving = tokio::task::JoinSet::new();
    for manager in 0..managers {
        let visits: Vec<_> = cast.visits.iter().skip(manager).step_by(managers).cloned().collect();
        let (hostel, answers) = (without_exclusion(&hostel), answers.clone());
        serving.spawn(async move { serve(&hostel, plan, visits, &answers).await });
    }
    while let Some(served) = serving.join_next().await {
        served.expect("it does not panic");
    }
    drop(answers);
    let mut count = 0;
    while answered.recv().await.is_some() {
        count += 1;
    }
    assert_eq!(count, cast.visits.len(), "everybody has an answer");
    hostel
}

/// A provider on a bad day may need more than one recovery.
async fn settle_all<S: Store, P: Provider>(hostel: &Hostel<S, P>) {
    for _ in 0..20 {
        if hostel.recover().await.expect("it can be read").left.is_empty() {
            recover(hostel).await;
            return;
        }
    }
    panic!("it cannot be settled");
}

#[tokio::test]
async fn locks_that_exclude_make_a_race_sound() {
    for seed in 0..5 {
        let hostel = race(LocalStore::default(), 1, seed).await;
        settle_all(&hostel).await;
        sound(&look(&hostel).await);
    }
}

/// On one thread two grants never fall into the same microsecond, so their tokens differ.
#[tokio::test]
async fn fences_make_a_race_sound_even_if_locks_exclude_nobody() {
    for seed in 0..20 {
        let hostel = race(LocalStore::default(), 8, seed).await;
        settle_all(&without_exclusion(&hostel)).await;
        sound(&look(&hostel).await);
    }
}

#[tokio::test]
async fn without_fences_and_exclusion_the_audit_finds_damage() {
    for seed in 0..20 {
        let hostel = race(Unfenced(LocalStore::default()), 8, seed).await;
        let _ = without_exclusion(&hostel).recover().await.expect("it can be read");
        let violations = look(&hostel).await.audit().violations;
        if violations.iter().any(|violation| violation.contains("occupant")) {
            return;
        }
    }
    panic!("20 races without any protection did no damage, so races prove nothing");
}
