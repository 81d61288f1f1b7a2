//! The parts of a lock that cost next to nothing, so that it stays like that.
#![allow(missing_docs)] // What criterion's macros expand to has none.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use cache_lock::{LockError, LockGuard, LockKey, LockManager, LockOptions, cache_lock};
use criterion::{Criterion, criterion_group, criterion_main};
use tokio::{runtime::Runtime, task::yield_now};

fn keys(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("key");
    group.bench_function("of a number", |bencher| {
        bencher.iter(|| LockKey::new("room").part(black_box(42_u64)));
    });
    group.bench_function("of a text and a number", |bencher| {
        bencher.iter(|| LockKey::new("room").part(black_box("north wing")).part(black_box(42_u64)));
    });
    group.finish();
}

async fn without_lock(room: u32) -> Result<u32, LockError> {
    Ok(black_box(room))
}

#[cache_lock(prefix = "room", key = "{room}")]
async fn with_attribute(room: u32) -> Result<u32, LockError> {
    Ok(black_box(room))
}

fn attribute(criterion: &mut Criterion) {
    let runtime = runtime();
    let locks = LockManager::in_memory();
    locks.install().expect("no other is installed");
    let mut group = criterion.benchmark_group("section in memory");
    group.bench_function("without a lock", |bencher| {
        bencher.iter_custom(|times| {
            runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..times {
                    without_lock(black_box(42)).await.expect("it cannot fail");
                }
                start.elapsed()
            })
        });
    });
    group.bench_function("with the attribute", |bencher| {
        bencher.iter_custom(|times| {
            runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..times {
                    with_attribute(black_box(42)).await.expect("no other caller wants it");
                }
                start.elapsed()
            })
        });
    });
    group.finish();
    runtime.block_on(locks.shutdown());
}

/// Two tasks on one key: while one is in its section, the other waits.
fn hand_over(criterion: &mut Criterion) {
    let runtime = runtime();
    let locks = LockManager::in_memory();
    criterion.bench_function("hand-over in memory", |bencher| {
        bencher.iter_custom(|times| {
            runtime.block_on(async {
                let start = Instant::now();
                let other = tokio::spawn(sections(locks.clone(), times / 2));
                sections(locks.clone(), times - times / 2).await;
                other.await.expect("it does not panic");
                start.elapsed()
            })
        });
    });
    runtime.block_on(locks.shutdown());
}

async fn sections(locks: LockManager, number: u64) {
    let options = LockOptions::new().timeout(Duration::from_secs(60));
    for _ in 0..number {
        let body = async |_: &LockGuard| yield_now().await;
        locks.run("job", &options, body).await.expect("the other one lets go");
    }
}

fn runtime() -> Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be built")
}

criterion_group!(benches, keys, attribute, hand_over);
criterion_main!(benches);
