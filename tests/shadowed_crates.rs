//! A binary of its own, since its crate root hides other crates: the attribute in a crate whose
//! dependencies have the names of the standard library and of tokio, as local packages may.

#![allow(unused_extern_crates, reason = "each hides the crate of its name")]

extern crate self as alloc;
extern crate self as cache_lock_macros;
extern crate self as cache_lock_runtime;
extern crate self as core;
extern crate self as std;
extern crate self as tokio;

use cache_lock::{LockError, LockManager, cache_lock};

const PREFIX: &str = "shadowed";
#[cache_lock(
    prefix = PREFIX,
    key = "{id}",
    timeout = "1s",
    expire = "1s",
    max_hold = "1m",
    bind = lock,
    when = id > 0,
    with = locks,
)]
async fn every_path(id: u64, locks: &LockManager) -> Result<bool, LockError> {
    Ok(lock.is_some())
}

#[cache_lock(prefix = "shadowed", skip_if_locked, on_lost = "finish", or_else = none)]
async fn skips() -> Option<u8> {
    Some(1)
}

fn none(_: LockError) -> Option<u8> {
    None
}

#[test]
fn dependencies_may_have_any_name() {
    let locks = LockManager::in_memory();
    assert!(pollster::block_on(every_path(1, &locks)).expect("free"));
    assert!(!pollster::block_on(every_path(0, &locks)).expect("no lock"));
    assert_eq!(pollster::block_on(locks.scope(skips())), Some(1));
}
