//! All arguments are dropped under the lock.

use super::*;

#[cache_lock(prefix = "witness", with = locks)]
async fn all_kinds(
    a: Witness,
    _b: Witness,
    _: Witness,
    (d, _): (Witness, Witness),
    locks: &LockManager,
    log: &Log,
) -> Result<(), LockError> {
    log.push("body");
    let _ = &d;
    drop(a);
    Ok(())
}

#[tokio::test]
async fn every_argument_is_dropped_under_lock() {
    let of = Witnesses::new();
    let pair = (of.witness("d"), of.witness("e"));
    let (a, b, c) = (of.witness("a"), of.witness("b"), of.witness("c"));
    all_kinds(a, b, c, pair, &of.locks, &of.log).await.expect("free");
    let events = of.log.take();
    assert_eq!(events[..2], ["body", "a dropped, held: true"]);
    let mut at_the_end = events[2..].to_vec();
    at_the_end.sort();
    let expected = ["b", "c", "d", "e"].map(|name| format!("{name} dropped, held: true"));
    assert_eq!(at_the_end, expected);
    assert!(!is_held(&of.locks, "witness").await);
}

#[cache_lock(prefix = "witness", with = locks)]
async fn simple(a: Witness, b: Witness, c: Witness, locks: &LockManager) -> Result<(), LockError> {
    let _ = (&b, &a, &c);
    Ok(())
}

#[tokio::test]
async fn arguments_are_dropped_in_order_of_plain_function() {
    let of = Witnesses::new();
    let (a, b, c) = (of.witness("a"), of.witness("b"), of.witness("c"));
    simple(a, b, c, &of.locks).await.expect("free");
    let expected = ["c", "b", "a"].map(|name| format!("{name} dropped, held: true"));
    assert_eq!(of.log.take(), expected);
}

struct Owner {
    witness: Witness,
    name: String,
}

impl Owner {
    #[cache_lock(prefix = "witness", with = self.witness.locks)]
    async fn by_value(self) -> Result<usize, LockError> {
        Ok(self.name.len())
    }

    #[cache_lock(prefix = "witness", with = self.witness.locks)]
    async fn shared(self: Arc<Self>) -> Result<(), LockError> {
        Ok(())
    }
}

#[tokio::test]
async fn receivers_are_dropped_under_lock() {
    let of = Witnesses::new();
    let owner = || Owner { witness: of.witness("self"), name: "ab".to_owned() };
    assert_eq!(owner().by_value().await.expect("free"), 2);
    assert_eq!(of.log.take(), ["self dropped, held: true"]);
    Arc::new(owner()).shared().await.expect("free");
    assert_eq!(of.log.take(), ["self dropped, held: true"]);
}

#[cache_lock(prefix = "witness", with = locks)]
async fn waits_for_ever(
    _a: Witness,
    (b, _): (Witness, Witness),
    locks: &LockManager,
) -> Result<(), LockError> {
    let _ = &b;
    std::future::pending().await
}

#[tokio::test]
async fn arguments_are_dropped_under_lock_when_call_is_cancelled() {
    let of = Witnesses::new();
    {
        let pair = (of.witness("b"), of.witness("c"));
        let mut call = pin!(waits_for_ever(of.witness("a"), pair, &of.locks));
        let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        assert!(is_held(&of.locks, "witness").await);
    }
    let dropped = of.log.take();
    assert_eq!(dropped.len(), 3);
    assert!(dropped.iter().all(|event| event.ends_with("held: true")), "{dropped:?}");
    assert!(!is_held(&of.locks, "witness").await);
}

#[cache_lock(prefix = "witness", with = locks)]
async fn panics(_a: Witness, locks: &LockManager) -> Result<(), LockError> {
    panic!("on purpose");
}

#[tokio::test]
async fn arguments_are_dropped_under_lock_when_body_panics() {
    let of = Witnesses::new();
    let (witness, locks) = (of.witness("a"), of.locks.clone());
    let task = tokio::spawn(async move { panics(witness, &locks).await });
    assert!(task.await.is_err_and(|error| error.is_panic()));
    assert_eq!(of.log.take(), ["a dropped, held: true"]);
}

#[async_trait::async_trait]
trait Service {
    async fn serve(self: Box<Self>, a: Witness, b: (Witness, Witness)) -> Result<(), LockError>;
}

#[async_trait::async_trait]
impl Service for Owner {
    #[cache_lock(prefix = "witness", with = self.witness.locks)]
    async fn serve(
        self: Box<Self>,
        _a: Witness,
        (b, _c): (Witness, Witness),
    ) -> Result<(), LockError> {
        drop(b);
        Ok(())
    }
}

#[tokio::test]
async fn arguments_of_boxed_method_are_dropped_under_lock() {
    let of = Witnesses::new();
    let owner = Box::new(Owner { witness: of.witness("self"), name: String::new() });
    owner.serve(of.witness("a"), (of.witness("b"), of.witness("c"))).await.expect("free");
    let dropped = of.log.take();
    assert_eq!(dropped.len(), 4);
    assert!(dropped.iter().all(|event| event.ends_with("held: true")), "{dropped:?}");
}
