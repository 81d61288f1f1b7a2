//! What an expansion does, on the memory store.

use std::{
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use cache_lock::{
    LockError, LockGuard, LockKey, LockKeyPart, LockManager, LockOptions, PartWriter, cache_lock,
};

/// Whether somebody holds the lock.
async fn is_held(locks: &LockManager, key: impl Into<LockKey>) -> bool {
    match locks.acquire(key.into(), &LockOptions::new().timeout(Duration::ZERO)).await {
        Ok(guard) => {
            guard.release().await.expect("the memory store answers");
            false
        }
        Err(error) => {
            // Asked from inside of the body.
            let nested = matches!(error, LockError::Nested { .. });
            assert!(error.is_contended() || nested, "{error}");
            true
        }
    }
}

/// What happens, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn push(&self, event: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes down when it is dropped, and whether the lock was still held then.
struct Witness {
    name: &'static str,
    log: Log,
    locks: LockManager,
}

impl Drop for Witness {
    fn drop(&mut self) {
        // The memory store answers in the first poll.
        let probe = pin!(is_held(&self.locks, "witness"));
        let held = match probe.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(held) => held.to_string(),
            Poll::Pending => "unknown".to_owned(),
        };
        self.log.push(format!("{} dropped, held: {held}", self.name));
    }
}

struct Witnesses {
    log: Log,
    locks: LockManager,
}

impl Witnesses {
    fn new() -> Self {
        Self { log: Log::default(), locks: LockManager::in_memory() }
    }

    fn witness(&self, name: &'static str) -> Witness {
        Witness { name, log: self.log.clone(), locks: self.locks.clone() }
    }
}

mod key {
    use super::*;

    /// A key part that counts how often it is asked.
    struct Counted<'a>(&'a AtomicUsize);

    impl LockKeyPart for Counted<'_> {
        fn write_part(&self, part: &mut PartWriter<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
            part.push_str("x");
        }
    }

    #[cache_lock(prefix = "once", key = "{id}", timeout = "20ms", bind = lock)]
    async fn once(id: Counted<'_>) -> Result<String, LockError> {
        let _ = &id;
        Ok(lock.key().to_string())
    }

    #[tokio::test]
    async fn is_evaluated_once_however_often_the_server_is_asked() {
        let locks = LockManager::in_memory();
        let asked = AtomicUsize::new(0);
        assert_eq!(locks.scope(once(Counted(&asked))).await.expect("free"), "once:x");
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        let _held = locks.acquire("once:x", &LockOptions::new()).await.expect("free");
        assert!(locks.scope(once(Counted(&asked))).await.expect_err("held").is_contended());
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[cache_lock(prefix = "mutated", key = "{id}", bind = lock)]
    async fn mutated(mut id: String, locks: &LockManager) -> Result<(), LockError> {
        id.push('!');
        assert_eq!(lock.key().as_str(), "mutated:a");
        assert!(is_held(locks, "mutated:a").await);
        Ok(())
    }

    #[tokio::test]
    async fn is_that_of_before_the_body() {
        let locks = LockManager::in_memory();
        locks.scope(mutated("a".to_owned(), &locks)).await.expect("free");
        assert!(!is_held(&locks, "mutated:a").await);
    }

    #[cache_lock(prefix = "p", key = "{a}:{b}", bind = lock)]
    async fn template(a: &str, b: u8) -> Result<LockKey, LockError> {
        Ok(lock.key().clone())
    }

    #[tokio::test]
    async fn of_a_template_equals_that_of_parts() {
        let locks = LockManager::in_memory();
        for a in ["x", "x:y", "%", "{x}", ""] {
            let key = locks.scope(template(a, 1)).await.expect("free");
            assert_eq!(key, LockKey::new("p").part(a).part(1_u8));
        }
    }
}

mod body {
    use super::*;

    #[derive(Debug, PartialEq)]
    enum Failed {
        Body,
        Lock,
    }

    impl From<LockError> for Failed {
        fn from(_: LockError) -> Self {
            Self::Lock
        }
    }

    #[cache_lock(prefix = "body", timeout = 0, bind = lock)]
    async fn run(runs: &AtomicUsize, fail: bool) -> Result<bool, Failed> {
        runs.fetch_add(1, Ordering::Relaxed);
        if fail {
            return Err(Failed::Body);
        }
        Ok(!lock.is_lost())
    }

    #[tokio::test]
    async fn outcome_is_returned_and_the_lock_is_free_again() {
        let (locks, runs) = (LockManager::in_memory(), AtomicUsize::new(0));
        assert_eq!(locks.scope(run(&runs, false)).await, Ok(true));
        assert_eq!(locks.scope(run(&runs, true)).await, Err(Failed::Body));
        assert_eq!(locks.scope(run(&runs, false)).await, Ok(true));
        assert_eq!(runs.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn does_not_run_without_the_lock() {
        let (locks, runs) = (LockManager::in_memory(), AtomicUsize::new(0));
        let held = locks.acquire("body", &LockOptions::new()).await.expect("free");
        assert_eq!(locks.scope(run(&runs, false)).await, Err(Failed::Lock));
        assert_eq!(runs.load(Ordering::Relaxed), 0);
        held.release().await.expect("the memory store answers");
        // Nor without a manager.
        assert_eq!(run(&runs, false).await, Err(Failed::Lock));
        locks.shutdown().await;
        assert_eq!(locks.scope(run(&runs, false)).await, Err(Failed::Lock));
        assert_eq!(runs.load(Ordering::Relaxed), 0);
    }

    #[cache_lock(prefix = "panic")]
    async fn panics(_id: u64) -> Result<(), LockError> {
        std::panic::panic_any("from the body");
    }

    #[tokio::test]
    async fn panic_is_the_callers_and_frees_the_lock() {
        let locks = LockManager::in_memory();
        let scope = locks.clone();
        let task = tokio::spawn(async move { scope.scope(panics(1)).await });
        let panic = task.await.expect_err("the body panics").into_panic();
        assert_eq!(panic.downcast_ref(), Some(&"from the body"));
        assert!(!is_held(&locks, "panic").await);
    }

    #[cache_lock(prefix = "exclusive", key = "{id}")]
    async fn read_and_write(id: u64, shelf: &Mutex<u64>) -> Result<(), LockError> {
        let read = *shelf.lock().expect("no test panics with it");
        tokio::task::yield_now().await;
        *shelf.lock().expect("no test panics with it") = read + id;
        Ok(())
    }

    #[tokio::test]
    async fn runs_alone() {
        let (locks, shelf) = (LockManager::in_memory(), Arc::new(Mutex::new(0)));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let (locks, shelf) = (locks.clone(), Arc::clone(&shelf));
            tasks.spawn(async move { locks.scope(read_and_write(1, &shelf)).await });
        }
        for result in tasks.join_all().await {
            result.expect("all get their turn");
        }
        assert_eq!(*shelf.lock().expect("no test panics with it"), 50);
    }
}

mod arguments {
    use super::*;

    #[cache_lock(prefix = "when", when = { asked.fetch_add(1, Ordering::Relaxed); locked }, bind = lock)]
    async fn when(locked: bool, asked: &AtomicUsize) -> Result<bool, LockError> {
        let lock: Option<&LockGuard> = lock;
        Ok(lock.is_some())
    }

    #[tokio::test]
    async fn when_decides_once_whether_there_is_a_lock() {
        let (locks, asked) = (LockManager::in_memory(), AtomicUsize::new(0));
        assert!(locks.scope(when(true, &asked)).await.expect("free"));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        let _held = locks.acquire("when", &LockOptions::new()).await.expect("free");
        assert!(!locks.scope(when(false, &asked)).await.expect("there is no lock to fail"));
        // Without a lock there need not be a manager either.
        assert!(!when(false, &asked).await.expect("there is no lock to fail"));
        assert_eq!(asked.load(Ordering::Relaxed), 3);
    }

    struct Service {
        locks: LockManager,
    }

    impl Service {
        #[cache_lock(prefix = "with", with = self.locks, bind = lock)]
        async fn with(&self, other: &LockManager) -> Result<(bool, bool), LockError> {
            assert_eq!(lock.key().as_str(), "with");
            Ok((is_held(&self.locks, "with").await, is_held(other, "with").await))
        }
    }

    #[tokio::test]
    async fn with_names_the_manager() {
        let service = Service { locks: LockManager::in_memory() };
        let scope = LockManager::in_memory();
        assert_eq!(scope.scope(service.with(&scope)).await.expect("free"), (true, false));
    }

    #[cache_lock(prefix = "token", bind = lock)]
    async fn token() -> Result<i64, LockError> {
        Ok(lock.token().as_i64())
    }

    #[tokio::test]
    async fn bind_gives_the_guard_with_its_token() {
        let locks = LockManager::in_memory();
        let first = locks.scope(token()).await.expect("free");
        assert!(locks.scope(token()).await.expect("free") > first);
    }

    #[cache_lock(prefix = "path", timeout = 0, or_else = describe)]
    async fn or_else_path() -> String {
        "done".to_owned()
    }

    fn describe(error: LockError) -> String {
        format!("contended: {}, key: {:?}", error.is_contended(), error.key().map(LockKey::as_str))
    }

    #[tokio::test]
    async fn or_else_path_makes_the_return_value() {
        let locks = LockManager::in_memory();
        assert_eq!(locks.scope(or_else_path()).await, "done");
        let _held = locks.acquire("path", &LockOptions::new()).await.expect("free");
        assert_eq!(locks.scope(or_else_path()).await, "contended: true, key: Some(\"path\")");
        assert_eq!(or_else_path().await, "contended: false, key: None");
    }

    #[cache_lock(
        prefix = "closure",
        key = "{name}",
        timeout = 0,
        on_lost = "finish",
        or_else = |error| { calls.fetch_add(1, Ordering::Relaxed); (name, error.is_contended()) }
    )]
    async fn or_else_closure(name: String, calls: &AtomicUsize) -> (String, bool) {
        (name + "!", false)
    }

    #[tokio::test]
    async fn or_else_closure_has_the_arguments() {
        let (locks, calls) = (LockManager::in_memory(), AtomicUsize::new(0));
        let run = || locks.scope(or_else_closure("a".to_owned(), &calls));
        assert_eq!(run().await, ("a!".to_owned(), false));
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        let _held = locks.acquire("closure:a", &LockOptions::new()).await.expect("free");
        assert_eq!(run().await, ("a".to_owned(), true));
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }

    #[cache_lock(prefix = "skip", skip_if_locked)]
    async fn skip() -> Result<Option<u8>, LockError> {
        Ok(Some(1))
    }

    #[tokio::test]
    async fn skip_if_locked_decides_only_busy() {
        let locks = LockManager::in_memory();
        assert_eq!(locks.scope(skip()).await.expect("free"), Some(1));
        let held = locks.acquire("skip", &LockOptions::new()).await.expect("free");
        assert_eq!(locks.scope(skip()).await.expect("busy is no error"), None);
        drop(held);
        locks.shutdown().await;
        assert!(matches!(locks.scope(skip()).await, Err(LockError::ShutDown)));
    }

    const SHORT: Duration = Duration::from_millis(100);

    #[cache_lock(prefix = "lost", expire = SHORT, renew = false, bind = lock)]
    async fn cancelled(ended: &AtomicUsize) -> Result<(), LockError> {
        lock.lost().await;
        tokio::task::yield_now().await;
        ended.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    #[cache_lock(prefix = "lost", expire = SHORT, renew = false, bind = lock, on_lost = "finish")]
    async fn finished(ended: &AtomicUsize) -> Result<bool, LockError> {
        lock.lost().await;
        tokio::task::yield_now().await;
        ended.fetch_add(1, Ordering::Relaxed);
        Ok(lock.is_lost())
    }

    #[cache_lock(prefix = "lost", expire = SHORT, renew = false, bind = lock, or_else = |_| Err(Early))]
    async fn cancelled_with_closure() -> Result<(), Early> {
        lock.lost().await;
        tokio::task::yield_now().await;
        Ok(())
    }

    #[derive(Debug, PartialEq)]
    struct Early;

    impl From<LockError> for Early {
        fn from(error: LockError) -> Self {
            assert!(error.is_lost(), "{error}");
            Self
        }
    }

    #[tokio::test]
    async fn on_lost_cancels_or_lets_finish() {
        let (locks, ended) = (LockManager::in_memory(), AtomicUsize::new(0));
        assert!(locks.scope(cancelled(&ended)).await.expect_err("lost").is_lost());
        assert_eq!(ended.load(Ordering::Relaxed), 0);
        assert!(locks.scope(finished(&ended)).await.expect("finished"));
        assert_eq!(ended.load(Ordering::Relaxed), 1);
        assert_eq!(locks.scope(cancelled_with_closure()).await, Err(Early));
    }

    #[cache_lock(prefix = "outer")]
    async fn outer() -> Result<(), LockError> {
        inner().await
    }

    #[cache_lock(prefix = "outer")]
    async fn inner() -> Result<(), LockError> {
        Ok(())
    }

    #[tokio::test]
    async fn a_nested_lock_fails_at_once() {
        let nested = LockManager::in_memory().scope(outer()).await;
        assert!(matches!(nested, Err(LockError::Nested { .. })), "{nested:?}");
    }
}

mod drop_order {
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
    async fn every_argument_is_dropped_under_the_lock() {
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
    async fn simple(
        a: Witness,
        b: Witness,
        c: Witness,
        locks: &LockManager,
    ) -> Result<(), LockError> {
        let _ = (&b, &a, &c);
        Ok(())
    }

    #[tokio::test]
    async fn arguments_are_dropped_in_the_order_of_a_plain_function() {
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
    async fn receivers_are_dropped_under_the_lock() {
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
    async fn arguments_are_dropped_under_the_lock_when_the_call_is_cancelled() {
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
    async fn arguments_are_dropped_under_the_lock_when_the_body_panics() {
        let of = Witnesses::new();
        let (witness, locks) = (of.witness("a"), of.locks.clone());
        let task = tokio::spawn(async move { panics(witness, &locks).await });
        assert!(task.await.is_err_and(|error| error.is_panic()));
        assert_eq!(of.log.take(), ["a dropped, held: true"]);
    }

    #[async_trait::async_trait]
    trait Service {
        async fn serve(self: Box<Self>, a: Witness, b: (Witness, Witness))
        -> Result<(), LockError>;
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
    async fn arguments_of_a_boxed_method_are_dropped_under_the_lock() {
        let of = Witnesses::new();
        let owner = Box::new(Owner { witness: of.witness("self"), name: String::new() });
        owner.serve(of.witness("a"), (of.witness("b"), of.witness("c"))).await.expect("free");
        let dropped = of.log.take();
        assert_eq!(dropped.len(), 4);
        assert!(dropped.iter().all(|event| event.ends_with("held: true")), "{dropped:?}");
    }
}

mod future {
    use super::*;

    const ARGUMENT: usize = 4096;

    /// Not `Copy`: what is copied stays where it was, too.
    struct Large([u8; ARGUMENT]);

    #[cache_lock(prefix = "size", key = "{id}", timeout = "2s", expire = "10s", bind = lock)]
    async fn locked(id: u64, argument: Large) -> Result<u8, LockError> {
        let _ = lock;
        tokio::task::yield_now().await;
        Ok(argument.0[usize::try_from(id).unwrap_or_default()])
    }

    async fn plain(id: u64, argument: Large) -> Result<u8, LockError> {
        tokio::task::yield_now().await;
        Ok(argument.0[usize::try_from(id).unwrap_or_default()])
    }

    #[test]
    fn is_larger_by_the_arguments_and_little_more() {
        let locked = size_of_val(&locked(1, Large([0; ARGUMENT])));
        let plain = size_of_val(&plain(1, Large([0; ARGUMENT])));
        assert!(locked <= plain + ARGUMENT + 512, "{locked} against {plain}");
    }

    #[cache_lock(prefix = "counts")]
    async fn counts(runs: &AtomicUsize) -> Result<(), LockError> {
        runs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    #[test]
    fn is_send_and_does_not_run_before_it_is_polled() {
        fn send<T: Send>(_: &T) {}
        let runs = AtomicUsize::new(0);
        let future = counts(&runs);
        send(&future);
        drop(future);
        assert_eq!(runs.load(Ordering::Relaxed), 0);
    }
}

mod handlers {
    use super::*;

    struct Path<T>(T);
    struct State<T>(T);

    trait FromRequest: Sized {
        fn from_request(request: &str) -> Self;
    }

    impl FromRequest for Path<u64> {
        fn from_request(request: &str) -> Self {
            Self(request.parse().unwrap_or_default())
        }
    }

    impl FromRequest for State<Arc<str>> {
        fn from_request(_: &str) -> Self {
            Self("state".into())
        }
    }

    type Response = Pin<Box<dyn Future<Output = Result<String, u16>> + Send>>;

    /// What web frameworks ask of a handler: a function of extractors whose future is `Send` and
    /// `'static`.
    trait Handler<Args>: Clone + Send + 'static {
        fn call(self, request: &str) -> Response;
    }

    impl<F, Fut, A, B> Handler<(A, B)> for F
    where
        F: FnOnce(A, B) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<String, AppError>> + Send + 'static,
        A: FromRequest + Send,
        B: FromRequest + Send,
    {
        fn call(self, request: &str) -> Response {
            let response = self(A::from_request(request), B::from_request(request));
            Box::pin(async move { response.await.map_err(|AppError(status)| status) })
        }
    }

    struct AppError(u16);

    impl From<LockError> for AppError {
        fn from(error: LockError) -> Self {
            Self(if error.is_contended() { 423 } else { 503 })
        }
    }

    #[cache_lock(prefix = "slot", key = "{id}", timeout = 0)]
    async fn book(Path(id): Path<u64>, State(state): State<Arc<str>>) -> Result<String, AppError> {
        tokio::task::yield_now().await;
        Ok(format!("{id} {state}"))
    }

    fn route<Args>(handler: impl Handler<Args>, request: &str) -> Response {
        handler.call(request)
    }

    #[tokio::test]
    async fn of_web_frameworks_take_the_attribute() {
        let locks = LockManager::in_memory();
        assert_eq!(locks.scope(route(book, "7")).await, Ok("7 state".to_owned()));
        let _held = locks.acquire("slot:7", &LockOptions::new()).await.expect("free");
        assert_eq!(locks.scope(route(book, "7")).await, Err(423));
        assert_eq!(route(book, "7").await, Err(503));
    }
}
