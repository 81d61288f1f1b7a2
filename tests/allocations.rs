//! A binary of its own, since its global allocator counts: how often a lock asks the allocator.
//! Allocations of other threads are not counted.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use allocation_counter::{AllocationInfo, measure};
use cache_lock::{LockError, LockKey, LockKeyPart, LockManager, PartWriter, cache_lock};

/// The value of a future that is ready at once.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits for something"),
    }
}

/// A call that finds no manager allocates its key, and drops it.
fn allocations_of_the_key(call: impl Future<Output = Result<(), LockError>>) -> u64 {
    let AllocationInfo { count_total, count_current, .. } = measure(|| {
        assert!(matches!(ready(call), Err(LockError::NoManager)));
    });
    assert_eq!(count_current, 0);
    count_total
}

struct Room {
    house: String,
    number: u32,
}

impl LockKeyPart for Room {
    fn write_part(&self, part: &mut PartWriter<'_>) {
        self.house.write_part(part);
        part.push_str("-");
        self.number.write_part(part);
    }
}

#[cache_lock(prefix = "nightly")]
async fn of_a_prefix() -> Result<(), LockError> {
    Ok(())
}

#[cache_lock(prefix = "room", key = "{id}")]
async fn of_a_number(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[cache_lock(prefix = "room", key = "{room}/{room.house}#{a}%{b}:{c}:{d}!")]
async fn of_parts(room: &Room, a: char, b: bool, c: i128, d: &str) -> Result<(), LockError> {
    Ok(())
}

#[cache_lock(prefix = "room")]
async fn of_marked_parameters(
    #[lock_key(house)] room: &Room,
    #[lock_key] id: u8,
) -> Result<(), LockError> {
    Ok(())
}

#[cache_lock(prefix = "p", key = "{text}")]
async fn of_a_text(text: &str) -> Result<(), LockError> {
    Ok(())
}

#[test]
fn key_is_one_allocation() {
    let room = Room { house: "north: {1}".to_owned(), number: u32::MAX };
    assert_eq!(allocations_of_the_key(of_a_prefix()), 1);
    assert_eq!(allocations_of_the_key(of_a_number(u64::MAX)), 1);
    assert_eq!(allocations_of_the_key(of_parts(&room, '/', true, i128::MIN, "\u{e9}%\n")), 1);
    assert_eq!(allocations_of_the_key(of_marked_parameters(&room, 7)), 1);
    assert_eq!(allocations_of_the_key(of_a_text("")), 1);
    assert_eq!(allocations_of_the_key(of_a_text(&"x".repeat(250))), 1);
    // Three times as long when it is escaped.
    assert_eq!(allocations_of_the_key(of_a_text(&"%".repeat(84))), 1);
}

#[test]
fn copies_of_key_are_none() {
    let key = LockKey::new("room").part(7);
    let copies = measure(|| drop([key.clone(), key.clone()]));
    assert_eq!(copies, AllocationInfo::default());
}

#[test]
fn lock_in_memory_is_three_allocations() {
    const CYCLES: u64 = 1000;
    let locks = LockManager::in_memory();
    let cycle = || ready(locks.scope(of_a_number(7))).expect("free");
    // What is there to stay: the manager's thread, the room in its maps.
    (0..CYCLES).for_each(|_| cycle());
    let cycles = measure(|| (0..CYCLES).for_each(|_| cycle()));
    assert_eq!(cycles.count_current, 0, "{cycles:?}");
    assert!(cycles.count_total <= 3 * CYCLES, "{cycles:?}");
}
