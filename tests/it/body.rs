//! A body's outcome is the caller's. A body ends before its lock does, and does not begin without one.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use cache_lock::{
    LockError, LockGuard, LockManager, LockManagerBuilder, LockOptions, OnLost, cache_lock,
};
use test_support::{Direction, Fault, Proxy, RedisServer, wait_until};

use crate::common::fleet::{Fleet, PATIENT, SHORT_LEASE, guarded, loss, on_both_stores, records};

on_both_stores!(
    value_of_body_that_was_late_is_returned,
    body_ends_before_its_lock,
    body_that_panics_ends_before_its_lock,
    body_that_is_dropped_ends_before_its_lock,
    body_that_is_cancelled_ends_before_its_lock,
    no_body_without_lock,
);

/// What becomes of a server while a body runs.
#[derive(Clone, Copy)]
enum Fate {
    Killed,
    Frozen,
}

/// Runs a body while its server meets its fate, so that the lock cannot be released.
async fn run_without_release<T>(
    builder: &LockManagerBuilder,
    fate: Fate,
    outcome: impl FnOnce() -> T,
) -> Result<T, LockError> {
    let server = RedisServer::start();
    let locks = builder.clone().connect(&server.url()).await.expect("the server is there");
    let body = async |_: &LockGuard| {
        match fate {
            Fate::Killed => server.kill(),
            Fate::Frozen => server.stop(),
        }
        outcome()
    };
    locks.run("job", &PATIENT, body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn release_that_fails_leaves_outcome_alone() {
    guarded(async {
        for fate in [Fate::Killed, Fate::Frozen] {
            for background in [false, true] {
                let builder = LockManager::builder()
                    .attempt_timeout(Duration::from_millis(300))
                    .background_release(background);
                let value = run_without_release(&builder, fate, || 7).await;
                assert!(matches!(value, Ok(7)), "{value:?}");

                let error = run_without_release(&builder, fate, || Err::<(), _>("sold out")).await;
                assert!(matches!(error, Ok(Err("sold out"))), "{error:?}");

                let task = tokio::spawn(async move {
                    run_without_release(&builder, fate, || panic!("on purpose")).await
                });
                let panic: Result<Result<(), _>, _> = task.await;
                let panic = panic.expect_err("it goes on to the caller").into_panic();
                assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
            }
        }
    })
    .await;
}

/// A server behind a proxy, and a manager that waits a minute for an answer.
struct Distant {
    server: RedisServer,
    proxy: Proxy,
    locks: LockManager,
    body_ran: AtomicBool,
}

impl Distant {
    async fn new(builder: LockManagerBuilder) -> Self {
        let server = RedisServer::start();
        let proxy = Proxy::start(server.port());
        let url = server.url_through(proxy.port());
        let locks = builder.attempt_timeout(Duration::from_secs(60)).connect(&url).await;
        let locks = locks.expect("the server is there");
        // So that the server knows the scripts, and one request is all that a release takes.
        locks.acquire("warm", &PATIENT).await.expect("free").release().await.expect("an answer");
        Self { server, proxy, locks, body_ran: AtomicBool::new(false) }
    }

    /// The body: from now on the server's answers are held back.
    fn hold_answers(&self) {
        self.proxy.set(Direction::Replies, Fault::Hold);
        self.body_ran.store(true, Ordering::SeqCst);
    }

    /// Whether a call is still under way when the server has released its lock and the answer is
    /// held back; then lets it go on to its end.
    async fn is_waited_for(&self, call: impl Future<Output = Result<(), LockError>>) -> bool {
        let mut call = pin!(call);
        let mut outcome = None;
        while outcome.is_none()
            && !(self.body_ran.load(Ordering::SeqCst) && records(&self.server) == 0)
        {
            outcome = tokio::time::timeout(Duration::from_millis(1), &mut call).await.ok();
        }
        self.proxy.pass();
        let waited = outcome.is_none();
        let outcome = match outcome {
            Some(outcome) => outcome,
            None => call.await,
        };
        outcome.expect("the body ran");
        wait_until("it is released", || records(&self.server) == 0);
        waited
    }
}

#[cache_lock(prefix = "job", expire = "1h", with = distant.locks, release = "background")]
async fn released_in_the_background(distant: &Distant) -> Result<(), LockError> {
    distant.hold_answers();
    Ok(())
}

#[cache_lock(prefix = "job", expire = "1h", with = distant.locks, release = "wait")]
async fn released_before_the_return(distant: &Distant) -> Result<(), LockError> {
    distant.hold_answers();
    Ok(())
}

#[cache_lock(prefix = "job", expire = "1h", with = distant.locks)]
async fn released_as_the_manager_says(distant: &Distant) -> Result<(), LockError> {
    distant.hold_answers();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn release_is_waited_for_or_not_as_lock_or_its_manager_says() {
    guarded(async {
        for background in [false, true] {
            let distant = || Distant::new(LockManager::builder().background_release(background));
            let d = distant().await;
            assert!(!d.is_waited_for(released_in_the_background(&d)).await);
            let d = distant().await;
            assert!(d.is_waited_for(released_before_the_return(&d)).await);
            let d = distant().await;
            assert_eq!(d.is_waited_for(released_as_the_manager_says(&d)).await, !background);
        }
    })
    .await;
}

async fn value_of_body_that_was_late_is_returned(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let body = async |_: &LockGuard| {
        // Its release will find a foreign lock.
        let next = there.acquire("job", &PATIENT).await.expect("the lease ends");
        Ok::<_, ()>(next)
    };
    let options = SHORT_LEASE.on_lost(OnLost::Finish);
    let next = here.run("job", &options, body).await.expect("the body ran").expect("its value");
    assert!(!next.is_lost());
}

/// Looks, when it is dropped, whether the lock is still held.
struct Witness {
    fleet: Arc<Fleet>,
    held_at_drop: Arc<AtomicUsize>,
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.held_at_drop.fetch_add(self.fleet.records(), Ordering::SeqCst);
    }
}

/// A body that owns a witness, as an argument; and the number of locks that it has seen.
fn witnessed(fleet: &Arc<Fleet>) -> (Witness, Arc<AtomicUsize>) {
    let held_at_drop = Arc::new(AtomicUsize::new(0));
    let witness = Witness { fleet: Arc::clone(fleet), held_at_drop: Arc::clone(&held_at_drop) };
    (witness, held_at_drop)
}

async fn body_ends_before_its_lock(fleet: Fleet) {
    let fleet = Arc::new(fleet);
    for background in [false, true] {
        let builder = LockManager::builder().background_release(background);
        let locks = fleet.build(builder).await;
        let (witness, held) = witnessed(&fleet);
        let body = async move |_: &LockGuard| {
            let _argument = &witness;
            tokio::task::yield_now().await;
        };
        locks.run("job", &PATIENT, body).await.expect("free");
        assert_eq!(held.load(Ordering::SeqCst), 1);
        wait_until("it is released", || fleet.records() == 0);
    }
}

async fn body_that_panics_ends_before_its_lock(fleet: Fleet) {
    let fleet = Arc::new(fleet);
    let locks = fleet.manager().await;
    let (witness, held) = witnessed(&fleet);
    let task = tokio::spawn(async move {
        let body = async move |_: &LockGuard| {
            let _argument = &witness;
            tokio::task::yield_now().await;
            panic!("on purpose");
        };
        locks.run("job", &PATIENT, body).await
    });
    assert!(task.await.expect_err("it panics").is_panic());
    assert_eq!(held.load(Ordering::SeqCst), 1);
    wait_until("it is released", || fleet.records() == 0);
}

async fn body_that_is_dropped_ends_before_its_lock(fleet: Fleet) {
    let fleet = Arc::new(fleet);
    let locks = fleet.manager().await;
    let (witness, held) = witnessed(&fleet);
    let started = AtomicBool::new(false);
    {
        let body = async |_: &LockGuard| {
            let _argument = witness;
            started.store(true, Ordering::SeqCst);
            std::future::pending::<()>().await;
        };
        let mut run = Box::pin(locks.run("job", &PATIENT, body));
        while !started.load(Ordering::SeqCst) {
            assert!(tokio::time::timeout(Duration::from_millis(1), &mut run).await.is_err());
        }
    }
    assert_eq!(held.load(Ordering::SeqCst), 1);
    wait_until("it is released", || fleet.records() == 0);
}

async fn body_that_is_cancelled_ends_before_its_lock(fleet: Fleet) {
    let fleet = Arc::new(fleet);
    let locks = fleet.manager().await;
    let (witness, held) = witnessed(&fleet);
    let (started, when_started) = tokio::sync::oneshot::channel();
    let body = async |_: &LockGuard| {
        let _argument = witness;
        started.send(()).expect("the test waits");
        std::future::pending::<()>().await;
    };
    // A loss at which the record is still there.
    let (outcome, ()) = tokio::join!(locks.run("job", &PATIENT, body), async {
        when_started.await.expect("the body runs");
        locks.shutdown().await;
    });
    assert!(loss(&outcome.expect_err("lost")).is_some());
    assert_eq!(held.load(Ordering::SeqCst), 1);
    assert_eq!(fleet.records(), 0);
}

/// Runs a body that must not start, and gives the error.
async fn refused(locks: &LockManager, key: &str, options: &LockOptions) -> LockError {
    let body = async |_: &LockGuard| panic!("there is no lock");
    match locks.run(key, options, body).await {
        Ok(()) => unreachable!("the body does not return"),
        Err(error) => error,
    }
}

async fn no_body_without_lock(fleet: Fleet) {
    let (here, there) = (fleet.manager().await, fleet.manager().await);
    let once = PATIENT.timeout(Duration::ZERO);
    let body = async |_: &LockGuard| {
        let contended = refused(&there, "job", &once).await;
        assert!(matches!(contended, LockError::Contended { .. }), "{contended}");
        let nested = refused(&here, "job", &once).await;
        assert!(matches!(nested, LockError::Nested { .. }), "{nested}");
    };
    here.run("job", &PATIENT, body).await.expect("free");

    let option = refused(&here, "job", &once.expire(Duration::ZERO)).await;
    assert!(matches!(option, LockError::InvalidOption { .. }), "{option}");
    let key = refused(&here, "", &once).await;
    assert!(matches!(key, LockError::InvalidKey { .. }), "{key}");

    if let Fleet::Redis(server) = &fleet {
        server.stop();
        let silent = refused(&here, "job", &once).await;
        assert!(matches!(silent, LockError::Backend { .. }), "{silent}");
        server.kill();
        let dead = refused(&here, "job", &once).await;
        assert!(matches!(dead, LockError::Backend { .. }), "{dead}");
        let never = LockManager::builder().connect_lazy(&server.url()).expect("the URL is fine");
        let dead = refused(&never, "job", &once).await;
        assert!(matches!(dead, LockError::Backend { .. }), "{dead}");
    }

    here.shutdown().await;
    let shut_down = refused(&here, "job", &once).await;
    assert!(matches!(shut_down, LockError::ShutDown), "{shut_down}");
}
