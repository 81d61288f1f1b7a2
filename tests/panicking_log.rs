//! What reads the log may panic. That costs no lease its renewal, and no holder the news of a loss.

use std::{thread, time::Duration};

use cache_lock::{LockManager, LockOptions, LostReason};
use test_support::wait_until;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{Layer, layer::Context, layer::SubscriberExt as _, registry};

/// Panics at warnings on the manager's own thread.
struct Panics;

impl<S: Subscriber> Layer<S> for Panics {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let warning = *event.metadata().level() == Level::WARN;
        assert!(!warning || thread::current().name() != Some("cache-lock"), "a log that panics");
    }
}

#[tokio::test]
async fn a_log_that_panics_costs_nothing() {
    let noticed = tokio::time::timeout(Duration::from_secs(60), losses_and_renewals());
    noticed.await.expect("the losses are noticed");
}

async fn losses_and_renewals() {
    let subscriber = registry().with(Panics);
    tracing::subscriber::set_global_default(subscriber).expect("it is the only one");
    let locks = LockManager::in_memory();
    let expire = Duration::from_millis(200);
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
    drop(renewed);
    wait_until("nothing is in hand", || locks.in_hand().leases == 0);
}
