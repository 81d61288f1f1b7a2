use cache_lock::{LockError, LockManager, cache_lock};

#[allow(dead_code, non_camel_case_types, clippy::upper_case_acronyms)]
mod own {
    pub(crate) enum Result {
        Ok(u8),
        Err,
    }
    pub(crate) use Result::{Err, Ok};
    pub(crate) struct Some;
    pub(crate) struct None;
    pub(crate) struct Option;
    pub(crate) struct Clone;
    pub(crate) struct Box;
    pub(crate) struct Vec;
    pub(crate) struct String;
    pub(crate) struct Duration;
    pub(crate) struct LockManager;
    pub(crate) struct LockGuard;
    pub(crate) struct LockOptions;
    pub(crate) struct bool;
    pub(crate) struct str;
    pub(crate) struct u64;
    pub(crate) trait From {}
    pub(crate) trait Into {}
    pub(crate) trait Future {}
    pub(crate) trait Send {}
    pub(crate) trait Sync {}
    pub(crate) trait Drop {}
    pub(crate) trait FnOnce {}
}

mod shadowed {
    #[allow(unused_imports, clippy::wildcard_imports)]
    use super::own::*;
    use super::{Errors, Manager, Maybe, Number, Truth, cache_lock};

    #[allow(dead_code)]
    mod core {}
    #[allow(dead_code)]
    mod std {}
    #[allow(dead_code)]
    mod tokio {}

    #[allow(unused_macros)]
    macro_rules! pin {
        () => {};
    }
    #[allow(unused_macros)]
    macro_rules! panic {
        () => {};
    }
    #[allow(unused_macros)]
    macro_rules! matches {
        () => {};
    }
    #[allow(unused_macros)]
    macro_rules! vec {
        () => {};
    }

    const PREFIX: &::core::primitive::str = "shadowed";
    const LEASE: ::core::time::Duration = ::core::time::Duration::from_secs(1);

    #[cache_lock(
        prefix = PREFIX,
        key = "{id}",
        bind = lock,
        when = id > 0,
        timeout = "1s",
        expire = LEASE,
        max_hold = "1m",
        skip_if_locked,
        with = locks
    )]
    pub(super) async fn shadowed(id: Number, locks: &Manager) -> Errors<Maybe<Truth>> {
        let _ = (Ok(1), Err, Some, None, Option, Clone);
        let _: Option = Option;
        let _: fn(::core::primitive::u8) -> Result = Ok;
        Errors::Ok(Maybe::Some(lock.is_some()))
    }
}

type Errors<T> = Result<T, LockError>;
type Maybe<T> = Option<T>;
type Truth = bool;
type Number = u64;
type Manager = LockManager;

async fn check() {
    let locks = LockManager::in_memory();
    assert!(shadowed::shadowed(1, &locks).await.unwrap().unwrap());
    assert!(!shadowed::shadowed(0, &locks).await.unwrap().unwrap());
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
