//! What a piece of code runs in: a manager, and the bodies around it.
//!
//! Both go with the *task*, not the thread: they are set while a future is polled and put back
//! after. They do not cross `spawn`.

use std::{
    cell::RefCell,
    mem,
    pin::pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use crate::{error::LockError, key::LockKey, lease::Lease, manager_core::Core};

static INSTALLED: OnceLock<Arc<Core>> = OnceLock::new();

thread_local! {
    static MANAGER: RefCell<Option<Arc<Core>>> = const { RefCell::new(None) };
    static ENCLOSING: RefCell<Option<Arc<Lease>>> = const { RefCell::new(None) };
}

pub(crate) fn install(manager: &Arc<Core>) -> Result<(), LockError> {
    INSTALLED.set(Arc::clone(manager)).map_err(|_| LockError::AlreadyInstalled)
}

/// The manager of the innermost scope, else the installed one.
pub(crate) fn core() -> Result<Arc<Core>, LockError> {
    // A thread that is ending has no locals, and so no scope.
    let scoped = MANAGER.try_with(|manager| manager.borrow().clone()).ok().flatten();
    scoped.or_else(|| INSTALLED.get().cloned()).ok_or(LockError::NoManager)
}

pub(crate) async fn with_core<F: Future>(manager: Arc<Core>, future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        let _entered = Scoped::new(&MANAGER, Arc::clone(&manager));
        future.as_mut().poll(context)
    })
    .await
}

/// Polls a body inside of its lease.
pub(crate) fn poll_in<F: Future>(
    lease: &Arc<Lease>,
    body: std::pin::Pin<&mut F>,
    context: &mut Context<'_>,
) -> Poll<F::Output> {
    let _entered = Scoped::new(&ENCLOSING, Arc::clone(lease));
    body.poll(context)
}

/// The lease of the innermost enclosing body.
pub(crate) fn enclosing() -> Option<Arc<Lease>> {
    ENCLOSING.try_with(|lease| lease.borrow().clone()).ok().flatten()
}

/// Whether `lease`, or one that encloses it, is one of `manager` on `key`.
pub(crate) fn is_nested(lease: Option<&Arc<Lease>>, manager: u64, key: &LockKey) -> bool {
    let mut next = lease;
    while let Some(lease) = next {
        if lease.manager == manager && lease.key == *key {
            return true;
        }
        next = lease.enclosing.as_ref();
    }
    false
}

type TaskLocal<T> = std::thread::LocalKey<RefCell<Option<T>>>;

/// Puts a value into a local, and the earlier one back at the end, also when a poll panics.
struct Scoped<T: 'static> {
    local: &'static TaskLocal<T>,
    earlier: Option<T>,
}

impl<T> Scoped<T> {
    fn new(local: &'static TaskLocal<T>, value: T) -> Self {
        let swap = local.try_with(|local| local.borrow_mut().replace(value));
        Self { local, earlier: swap.ok().flatten() }
    }
}

impl<T> Drop for Scoped<T> {
    fn drop(&mut self) {
        let earlier = self.earlier.take();
        // What was in the local is dropped after its borrow has ended: a manager's drop may run
        // code of its own.
        let _ended = self.local.try_with(|local| mem::replace(&mut *local.borrow_mut(), earlier));
    }
}
