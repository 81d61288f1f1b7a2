//! A binary of its own, since its global subscriber panics at every event.
//!
//! A panic of a subscriber or a waker costs no lease its renewal, no release its further tries, no
//! waiter its news, and no caller the outcome of its call.

use std::{
    fmt::Debug,
    sync::{
        Arc, Mutex, Once,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use cache_lock::{
    LockError, LockKey, LockManager, LockOptions, LostReason, ReleaseOutcome, SingleFlight,
};
use test_support::{Proxy, RedisServer, wait_until};
use tokio::sync::oneshot::error::RecvError;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{Layer, layer, layer::SubscriberExt as _, registry};

/// Panics at each event and at all that happens to a span.
struct Panics;

static PANICS: AtomicU64 = AtomicU64::new(0);

fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

fn panic_now() -> ! {
    PANICS.fetch_add(1, Ordering::Relaxed);
    // Without the hook that prints it: there are thousands.
    std::panic::resume_unwind(Box::new("a log that panics"))
}

/// The warnings of all tests, by the keys that they are about.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Key<'a>(&'a mut String);

impl Visit for Key<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "key" {
            *self.0 = format!("{value:?}");
        }
    }
}

/// So many warnings were logged about keys that begin so.
fn warnings(key: &str) -> usize {
    let warnings = WARNINGS.lock().expect("it does not panic in here");
    warnings.iter().filter(|about| about.starts_with(key)).count()
}

impl<S: Subscriber> Layer<S> for Panics {
    fn on_event(&self, event: &Event<'_>, _: layer::Context<'_, S>) {
        if *event.metadata().level() == Level::WARN {
            let mut key = String::new();
            event.record(&mut Key(&mut key));
            WARNINGS.lock().expect("it does not panic in here").push(key);
        }
        panic_now();
    }

    fn on_new_span(&self, _: &span::Attributes<'_>, _: &span::Id, _: layer::Context<'_, S>) {
        // Every second one goes on, to be entered.
        if PANICS.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            panic_now();
        }
    }

    fn on_record(&self, _: &span::Id, _: &span::Record<'_>, _: layer::Context<'_, S>) {
        panic_now();
    }

    fn on_enter(&self, _: &span::Id, _: layer::Context<'_, S>) {
        panic_now();
    }

    fn on_exit(&self, _: &span::Id, _: layer::Context<'_, S>) {
        panic_now();
    }

    fn on_close(&self, _: span::Id, _: layer::Context<'_, S>) {
        panic_now();
    }
}

fn log_that_panics() {
    static SUBSCRIBED: Once = Once::new();
    SUBSCRIBED.call_once(|| {
        let subscriber = registry().with(Panics);
        tracing::subscriber::set_global_default(subscriber).expect("it is the only one");
    });
}

/// Each wake-up panics.
struct PanicsToo;

impl Wake for PanicsToo {
    fn wake(self: Arc<Self>) {
        std::panic::resume_unwind(Box::new("a waker that panics"));
    }
}

/// A hang is a failure.
async fn in_time(test: impl Future<Output = ()>) {
    tokio::time::timeout(Duration::from_secs(60), test).await.expect("the test ends");
}

#[tokio::test]
async fn losses_and_renewals_in_memory() {
    log_that_panics();
    in_time(losses_and_renewals(LockManager::in_memory())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn losses_and_renewals_on_redis() {
    log_that_panics();
    let server = RedisServer::start();
    let locks = LockManager::connect(&server.url()).await.expect("the server runs");
    in_time(losses_and_renewals(locks)).await;
}

async fn losses_and_renewals(locks: LockManager) {
    let before = panics();
    let expire = Duration::from_millis(600);
    let short = LockOptions::new().expire(expire).renew(false);
    for _ in 0..2 {
        let ends = locks.acquire("ends", &short).await.expect("it is free");
        assert_eq!(ends.lost().await, LostReason::Expired);
    }
    // So long that a core which is blocked for a second costs no renewal.
    let expire = Duration::from_secs(2);
    let renewed = locks.acquire("renewed", &LockOptions::new().expire(expire)).await;
    let renewed = renewed.expect("it is free");
    tokio::time::sleep(3 * expire / 2).await;
    assert!(!renewed.is_lost());
    assert_eq!(renewed.release().await.expect("it answers"), ReleaseOutcome::Released);
    let outcome = locks.run("renewed", &short, async |_| "the body's outcome").await;
    assert_eq!(outcome.expect("it is free"), "the body's outcome");
    wait_until("nothing is in hand", || locks.in_hand().leases == 0);
    assert!(panics() > before, "it has read nothing");
}

/// Each loss is logged between the answers for two leases of the same request.
#[tokio::test(flavor = "multi_thread")]
async fn loss_costs_no_other_lease_of_its_batch() {
    log_that_panics();
    in_time(async {
        let server = RedisServer::start();
        let locks = LockManager::connect(&server.url()).await.expect("the server runs");
        let options = LockOptions::new().expire(Duration::from_secs(3));
        let mut guards = Vec::new();
        for number in 0..100 {
            let key = LockKey::new("batch").part(number);
            guards.push(locks.acquire(key, &options).await.expect("it is free"));
        }
        for number in (0..100).step_by(2) {
            server.cli(&["DEL", &format!("batch:{number}")]);
        }
        for (number, guard) in guards.iter().enumerate() {
            if number % 2 == 0 {
                assert_eq!(guard.lost().await, LostReason::Gone);
            }
        }
        tokio::time::sleep(Duration::from_secs(4)).await;
        let lost = guards.iter().skip(1).step_by(2).filter(|guard| guard.is_lost()).count();
        assert_eq!(lost, 0, "of 50");
    })
    .await;
}

/// The server is gone for a part of the leases, and each failure is logged.
#[tokio::test(flavor = "multi_thread")]
async fn outage_costs_no_lease_that_outlasts_it() {
    log_that_panics();
    in_time(async {
        let server = RedisServer::start();
        let proxy = Proxy::start(server.port());
        let url = server.url_through(proxy.port());
        let locks = LockManager::connect(&url).await.expect("the server runs");
        let options = LockOptions::new().expire(Duration::from_secs(6));
        let mut guards = Vec::new();
        for number in 0..50 {
            let key = LockKey::new("outage").part(number);
            guards.push(locks.acquire(key, &options).await.expect("it is free"));
        }
        proxy.refuse();
        proxy.cut();
        // Each lease logs that it is not renewed yet.
        wait_until("all of them have failed", || warnings("outage:") >= 50);
        proxy.pass();
        tokio::time::sleep(Duration::from_secs(7)).await;
        assert_eq!(guards.iter().filter(|guard| guard.is_lost()).count(), 0, "of 50");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn release_that_fails_is_tried_again() {
    log_that_panics();
    in_time(async {
        let server = RedisServer::start();
        let proxy = Proxy::start(server.port());
        let url = server.url_through(proxy.port());
        let locks = LockManager::connect(&url).await.expect("the server runs");
        let options = LockOptions::new().timeout(Duration::ZERO).expire(Duration::from_secs(600));
        let dropped = locks.acquire("dropped", &options).await.expect("it is free");
        let released = locks.acquire("released", &options).await.expect("it is free");
        proxy.refuse();
        proxy.cut();
        drop(dropped);
        released.release().await.expect_err("the server is gone");
        locks.acquire("not acquired", &options).await.expect_err("the server is gone");
        // Each says once that it is tried again.
        wait_until("both have failed", || warnings("dropped") + warnings("released") >= 2);
        proxy.pass();
        wait_until("both are free", || server.cli(&["EXISTS", "dropped", "released"]) == "0");
        wait_until("nothing is in hand", || locks.in_hand().keys == 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waker_that_panics_keeps_no_other_waiter_asleep() {
    in_time(async {
        let locks = LockManager::in_memory();
        let patient = LockOptions::new().timeout(Duration::from_secs(600));
        let waker = Waker::from(Arc::new(PanicsToo));
        let mut context = Context::from_waker(&waker);
        let mut guards = Vec::new();
        let mut first = Vec::new();
        let mut others = Vec::new();
        for key in ["a", "b", "c"] {
            guards.push(locks.acquire(key, &patient).await.expect("it is free"));
            let (waiting, patient) = (locks.clone(), patient);
            let mut panics = Box::pin(async move { waiting.acquire(key, &patient).await });
            assert!(panics.as_mut().poll(&mut context).is_pending());
            first.push(panics);
            let (locks, waiting) = (locks.clone(), locks.clone());
            others.push(tokio::spawn(async move { waiting.acquire(key, &patient).await }));
            let line = 2 * guards.len();
            wait_until("both wait", || locks.in_hand().timers >= line);
        }
        let mut told_first = Box::pin(guards[0].lost());
        assert!(told_first.as_mut().poll(&mut context).is_pending());
        let told = guards[0].lost();
        let shut_down = async {
            tokio::task::yield_now().await;
            locks.shutdown().await;
        };
        let (told, ()) = tokio::join!(told, shut_down);
        assert_eq!(told, LostReason::ShutDown);
        assert!(told_first.as_mut().poll(&mut context).is_ready());
        for other in others {
            let refused = other.await.expect("it does not panic");
            assert!(matches!(refused, Err(LockError::ShutDown)), "{refused:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wakers_that_panic_keep_no_caller_of_single_flight_asleep() {
    in_time(async {
        let locks = LockManager::in_memory();
        let patient = LockOptions::new().timeout(Duration::from_secs(600));
        let options = SingleFlight::new().lock(patient).local();
        let waker = Waker::from(Arc::new(PanicsToo));
        let mut context = Context::from_waker(&waker);
        for lands in [true, false] {
            let key = LockKey::new("flight").part(lands);
            let (sender, computed) = tokio::sync::oneshot::channel();
            let compute = async move || computed.await;
            let mut leading = Box::pin(locks.single_flight(key.clone(), &options, compute));
            assert!(leading.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            let mut waiting: Vec<_> = (0..2)
                .map(|_| {
                    let compute = async || Ok::<_, RecvError>(2);
                    Box::pin(locks.single_flight(key.clone(), &options, compute))
                })
                .collect();
            for waiting in &mut waiting {
                assert!(waiting.as_mut().poll(&mut context).is_pending());
            }
            let (others, joining) = (locks.clone(), key.clone());
            let before = locks.in_hand().timers;
            let other = tokio::spawn(async move {
                others.single_flight(joining, &options, async || Ok::<_, RecvError>(2)).await
            });
            wait_until("it waits", || locks.in_hand().timers > before);
            let value = if lands {
                sender.send(1).expect("the leader waits");
                assert_eq!(leading.await.expect("a panic of others is none of it"), 1);
                1
            } else {
                drop(leading);
                2
            };
            assert_eq!(other.await.expect("it does not panic").expect("no failure"), value);
        }
    })
    .await;
}
