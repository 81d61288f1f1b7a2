//! The thread that keeps locks alive whatever the caller's runtime does.
//!
//! A body may block its thread, and a test's runtime ends with the test, while leases must still
//! be renewed, deadlines noticed and releases sent. So each manager has one thread of its own,
//! with a small runtime on it. Waiting is also timed here: timers of the caller's runtime stand
//! still in a blocked one, and run ahead in tests that pause the clock.

use std::{
    io, mem,
    pin::{Pin, pin},
    process,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{runtime, sync::Notify};

use crate::{
    clock::Instant,
    error::{BackendError, BackendErrorKind},
    mutex::Mutex,
    signal::{Signal, wake_all},
    timer_queue::{TimerId, TimerQueue},
};

/// How long a driver goes on after its manager was dropped, to send what is still to be sent.
const LINGER: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Driver {
    runtime: OnceLock<Started>,
    starting: Mutex<()>,
    shared: Arc<DriverState>,
}

/// The runtime of the thread.
#[derive(Debug)]
struct Started {
    handle: runtime::Handle,
    /// The process that has the thread: one that is forked off has not.
    process: u32,
}

#[derive(Debug)]
struct DriverState {
    timers: TimerQueue<Waker>,
    tasks: AtomicUsize,
    idle: Signal,
    stop: Notify,
}

impl Driver {
    /// A driver whose thread starts when it is first needed.
    pub(crate) fn new() -> Self {
        let shared = DriverState {
            timers: TimerQueue::new(),
            tasks: AtomicUsize::new(0),
            idle: Signal::default(),
            stop: Notify::new(),
        };
        Self { runtime: OnceLock::new(), starting: Mutex::default(), shared: Arc::new(shared) }
    }

    /// Starts the thread, and on it `resident`, which runs until the driver stops. Does nothing if
    /// it runs already; a start that fails is tried again by the next call.
    pub(crate) fn start<F>(&self, resident: impl FnOnce() -> F) -> Result<(), BackendError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if let Some(started) = self.runtime.get() {
            return started.check();
        }
        let _starting = self.starting.lock();
        if self.runtime.get().is_none() {
            let handle = self.start_thread().map_err(|error| {
                let message = format!("the lock manager's thread could not be started: {error}");
                BackendError::new(BackendErrorKind::Unreachable, message)
            })?;
            handle.spawn(resident());
            // No other caller sets it while this one is starting.
            let _ = self.runtime.set(Started { handle, process: process::id() });
        }
        Ok(())
    }

    /// The thread was started, and by another process: that from which this one was forked.
    pub(crate) fn is_another_process(&self) -> bool {
        self.check_process().is_err()
    }

    /// # Errors
    /// [`BackendErrorKind::Forked`] in a process that was forked after the thread was started.
    pub(crate) fn check_process(&self) -> Result<(), BackendError> {
        self.runtime.get().map_or(Ok(()), Started::check)
    }

    fn start_thread(&self) -> io::Result<runtime::Handle> {
        let shared = Arc::clone(&self.shared);
        let (sender, receiver) = mpsc::sync_channel(1);
        // The runtime is built where it may be dropped: that is forbidden in async code.
        std::thread::Builder::new().name("cache-lock".to_owned()).spawn(move || {
            let mut builder = runtime::Builder::new_current_thread();
            // Few things block: names of hosts are looked up, and pauses of less than a millisecond.
            match builder.enable_all().max_blocking_threads(4).build() {
                Ok(runtime) => {
                    let _ = sender.send(Ok(runtime.handle().clone()));
                    runtime.block_on(shared.run());
                }
                Err(error) => drop(sender.send(Err(error))),
            }
        })?;
        receiver.recv().unwrap_or_else(|_| Err(io::Error::other("it ended at once")))
    }

    /// The runtime of the thread, once it is started.
    pub(crate) fn handle(&self) -> Option<&runtime::Handle> {
        self.runtime.get().map(|started| &started.handle)
    }

    /// Runs `task` on the thread; [`Driver::idle`] waits for it. Without a thread it is dropped:
    /// then nothing was ever acquired that it could clean up.
    pub(crate) fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Some(handle) = self.handle() else { return };
        // Dropped with the task, also if the runtime ends first.
        let running = self.running();
        // A future that is moved takes its room twice.
        let task = Box::pin(task);
        handle.spawn(async move {
            let _running = running;
            task.await;
        });
    }

    /// Makes [`Driver::idle`] wait for what a caller is about, for as long as the value lives.
    pub(crate) fn running(&self) -> Running {
        self.shared.tasks.fetch_add(1, Ordering::SeqCst);
        Running(Arc::clone(&self.shared))
    }

    /// Waits until nothing is running any more.
    pub(crate) async fn idle(&self) {
        self.shared.idle().await;
    }

    pub(crate) fn tasks(&self) -> usize {
        self.shared.tasks.load(Ordering::SeqCst)
    }

    pub(crate) fn timers(&self) -> usize {
        self.shared.timers.len()
    }

    /// Ends the thread, after what is spawned has run or [`LINGER`] has passed.
    pub(crate) fn stop(&self) {
        self.shared.stop.notify_one();
    }

    /// Waits until `due`.
    pub(crate) fn sleep_until(&self, due: Instant) -> Sleep<'_> {
        Sleep { timers: &self.shared.timers, due, slot: None }
    }

    /// The output of `future`, or `None` if it has none by `due`.
    pub(crate) async fn within<F: Future>(&self, due: Instant, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut sleep = pin!(self.sleep_until(due));
        std::future::poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            sleep.as_mut().poll(context).map(|()| None)
        })
        .await
    }
}

impl Started {
    /// A call of the system for each acquisition, of some 0.1 us: without unsafe code there is no cheaper
    /// way to notice a fork, and without the thread an acquisition would wait for ever.
    fn check(&self) -> Result<(), BackendError> {
        if self.process == process::id() {
            return Ok(());
        }
        let message = "the process was forked after the lock manager had started; \
             make a manager in the child, or build it with connect_lazy before the fork";
        Err(BackendError::new(BackendErrorKind::Forked, message))
    }
}

impl DriverState {
    async fn run(self: Arc<Self>) {
        let mut stop = pin!(self.stop.notified());
        loop {
            let mut due = pin!(self.timers.due());
            let woken = std::future::poll_fn(|context| {
                if let Poll::Ready(due) = due.as_mut().poll(context) {
                    return Poll::Ready(Some(due));
                }
                stop.as_mut().poll(context).map(|()| None)
            });
            match woken.await {
                Some(wakers) => wake_all(wakers),
                None => break,
            }
        }
        // Tasks that are left may be waiting for a timer.
        let timers = async {
            loop {
                wake_all(self.timers.due().await);
            }
        };
        let mut timers = pin!(timers);
        let mut idle = pin!(self.idle());
        let both = std::future::poll_fn(|context| {
            let _: Poll<()> = timers.as_mut().poll(context);
            idle.as_mut().poll(context)
        });
        let _ = tokio::time::timeout(LINGER, both).await;
    }

    async fn idle(&self) {
        loop {
            let idle = self.idle.given();
            if self.tasks.load(Ordering::SeqCst) == 0 {
                return;
            }
            idle.await;
        }
    }
}

/// Something that has to come to its end before the driver is idle.
#[derive(Debug)]
#[must_use]
pub(crate) struct Running(Arc<DriverState>);

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.tasks.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.idle.give();
        }
    }
}

/// See [`Driver::sleep_until`].
pub(crate) struct Sleep<'a> {
    timers: &'a TimerQueue<Waker>,
    due: Instant,
    slot: Option<TimerId>,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.due {
            return Poll::Ready(());
        }
        match self.slot {
            Some(slot) => {
                // The waker before it is dropped outside of the lock: that is code of its task.
                let mut waker = context.waker().clone();
                self.timers.update(slot, |before| mem::swap(before, &mut waker));
            }
            None => self.slot = Some(self.timers.insert(self.due, context.waker().clone())),
        }
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.timers.remove(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use super::*;

    struct Panics;

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker that panics");
        }
    }

    struct Tells(mpsc::Sender<()>);

    impl Wake for Tells {
        fn wake(self: Arc<Self>) {
            self.0.send(()).expect("the test waits");
        }
    }

    #[test]
    fn a_waker_that_panics_costs_nobody_the_time() {
        let driver = Driver::new();
        driver.start(std::future::pending).expect("a thread");
        let (sender, woken) = mpsc::channel();
        let wakers = [Waker::from(Arc::new(Panics)), Waker::from(Arc::new(Tells(sender)))];
        let mut due = Instant::now();
        let sleeps = wakers.map(|waker| {
            due = due + Duration::from_millis(20);
            let mut sleep = driver.sleep_until(due);
            let polled = Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            sleep
        });
        woken.recv_timeout(Duration::from_secs(30)).expect("the thread goes on");
        drop(sleeps);
        driver.stop();
    }
    /// A task that nothing but a waker keeps alive.
    struct LastOfItsTask(#[expect(dead_code, reason = "dropped")] Sleep<'static>);

    impl Wake for LastOfItsTask {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn a_waker_that_drops_its_task_is_dropped_outside_of_the_lock() {
        let (sender, done) = mpsc::channel();
        std::thread::spawn(move || {
            let driver: &Driver = Box::leak(Box::new(Driver::new()));
            let poll = |sleep: &mut Sleep<'_>, waker: &Waker| {
                assert!(Pin::new(sleep).poll(&mut Context::from_waker(waker)).is_pending());
            };
            let due = Instant::now() + Duration::from_secs(600);
            let (mut first, mut second) = (driver.sleep_until(due), driver.sleep_until(due));
            poll(&mut second, Waker::noop());
            let last = Waker::from(Arc::new(LastOfItsTask(second)));
            poll(&mut first, &last);
            drop(last);
            poll(&mut first, Waker::noop());
            sender.send(driver.timers()).expect("the test waits");
        });
        assert_eq!(done.recv_timeout(Duration::from_secs(30)), Ok(1));
    }
}
