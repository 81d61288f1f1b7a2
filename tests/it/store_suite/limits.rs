//! Options and keys that cannot be used are refused, with a word about the limit.

use std::time::Duration;

use cache_lock::{KeyProblem, LockError, LockGuard, LockManager, LockOptions, MemoryStore};

use crate::common::fleet::{Fleet, PATIENT, on_both_stores};

const DAY: Duration = Duration::from_secs(24 * 3600);
const MS: Duration = Duration::from_millis(1);

on_both_stores!(
    options_out_of_range_are_refused,
    options_at_their_limits_are_taken,
    keys_that_cannot_be_used_are_refused,
);

async fn options_out_of_range_are_refused(fleet: Fleet) {
    let locks = fleet.manager().await;
    let of = LockOptions::new;
    for (options, option, value, limit) in [
        (of().expire(Duration::ZERO), "expire", Duration::ZERO, "100ms"),
        (of().expire(99 * MS), "expire", 99 * MS, "100ms"),
        (of().expire(DAY + MS), "expire", DAY + MS, "24h"),
        (of().expire(Duration::MAX), "expire", Duration::MAX, "24h"),
        (of().max_hold(9 * 1000 * MS), "max_hold", 9 * 1000 * MS, "at least `expire`"),
        (of().max_hold(DAY).renew(false), "max_hold", DAY, "renew"),
    ] {
        let body = async |_: &LockGuard| unreachable!("no lock, no body");
        let error: LockError = locks.run("job", &options, body).await.expect_err("out of range");
        let text = error.to_string();
        let LockError::InvalidOption { option: o, value: v, .. } = error else { panic!("{text}") };
        assert_eq!((o, v), (option, value));
        assert!(text.contains(&format!("{value:?}")) && text.contains(limit), "{text}");
    }
    assert_eq!(fleet.records(), 0);
}

async fn options_at_their_limits_are_taken(fleet: Fleet) {
    let locks = fleet.manager().await;
    for expire in [100 * MS, DAY] {
        for timeout in [Duration::ZERO, Duration::MAX] {
            let options = PATIENT.expire(expire).timeout(timeout);
            let guard = locks.acquire("job", &options).await.expect("within the limits");
            assert!(guard.remaining() <= expire);
            guard.release().await.expect("no failure");
        }
    }
}

async fn keys_that_cannot_be_used_are_refused(fleet: Fleet) {
    let locks = fleet.manager().await;
    let long = "x".repeat(1025);
    for (key, problem) in [
        ("", KeyProblem::Empty),
        ("a}b{", KeyProblem::Braces),
        ("{}", KeyProblem::Braces),
        ("{a}:fence", KeyProblem::Reserved),
    ] {
        let error = locks.acquire(key, &PATIENT).await.expect_err("refused");
        assert!(
            matches!(&error, LockError::InvalidKey { problem: p, .. } if *p == problem),
            "{error}"
        );
        assert!(!error.is_retryable());
    }
    let error = locks.acquire(&*long, &PATIENT).await.expect_err("refused");
    assert!(error.to_string().contains("1025") && error.to_string().contains("1024"), "{error}");
    assert_eq!(fleet.records(), 0);
    drop(locks.acquire(&long[..1024], &PATIENT).await.expect("as long as it may be"));
    drop(locks.acquire("{a}:b", &PATIENT).await.expect("a hash tag"));
}

#[test]
fn builder_refuses_what_no_lock_could_use() {
    let builder = LockManager::builder;
    for (builder, option) in [
        (builder().expire(99 * MS), "expire"),
        (builder().expire(DAY + MS), "expire"),
        (builder().attempt_timeout(9 * MS), "attempt_timeout"),
        (builder().attempt_timeout(Duration::MAX), "attempt_timeout"),
    ] {
        let error = builder.clone().in_memory(MemoryStore::new()).expect_err("out of range");
        assert!(matches!(error, LockError::InvalidOption { option: o, .. } if o == option));
        let error = builder.connect_lazy("redis://127.0.0.1/").expect_err("out of range");
        assert!(matches!(error, LockError::InvalidOption { option: o, .. } if o == option));
    }
}
