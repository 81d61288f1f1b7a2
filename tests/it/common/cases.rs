//! Cases of one test that mostly wait, so they run at the same time.

use std::{panic::resume_unwind, thread};

use tokio::runtime::Builder;

/// Runs each case on a thread and a runtime of its own. A case may block its thread.
///
/// # Panics
/// With the first panic of a case, when all have ended.
pub(crate) fn at_once<C: Send, F: Future<Output = ()>>(
    cases: impl IntoIterator<Item = C>,
    test: impl Fn(C) -> F + Sync,
) {
    let run = |case| {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(test(case));
    };
    thread::scope(|scope| {
        let spawn = |case| scope.spawn(|| run(case));
        let running: Vec<_> = cases.into_iter().map(spawn).collect();
        let ended: Vec<_> = running.into_iter().map(|case| case.join()).collect();
        if let Some(panic) = ended.into_iter().find_map(Result::err) {
            resume_unwind(panic);
        }
    });
}
