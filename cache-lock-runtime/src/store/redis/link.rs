//! Connections: one for each runtime that locks are taken from.
//!
//! A connection is served by a task of the runtime that it was opened on, and stands still or ends
//! with it. So each runtime gets its own, when it first asks, and the entry goes when the runtime
//! does. Callers outside of tokio share the driver's.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, ProtocolVersion, PushInfo, PushKind, RedisError,
    Value,
    aio::{ConnectionLike, MultiplexedConnection},
};
use tokio::{
    runtime::{Handle, Id},
    sync::Notify,
};

use super::{
    config::Parsed,
    failure::{Failure, describe},
    inbox::{self, Mailbox},
};
use crate::{
    clock::Moment,
    driver::Driver,
    error::{BackendError, BackendErrorKind},
};

/// So many answers in a row that do not come in time end a connection, if there was none at all
/// for the time of an attempt: nothing else ends one whose other side is gone without a word.
const PATIENCE: u32 = 2;

/// The longest time that opening a connection may take.
const OPENING: Duration = Duration::from_secs(5);

/// After a connection could not be opened, so long nobody tries again; all who ask meanwhile share
/// the next try. So a server that comes back is not met by a storm.
const PAUSE: Duration = Duration::from_millis(50);

/// An open connection.
pub(super) struct Link {
    connection: MultiplexedConnection,
    runtime: Id,
    /// The number under which it is known to the mailbox.
    number: u64,
    overdue: AtomicU32,
    /// When something was sent to which, or after which, nothing was answered; 0 for never.
    silent_since: AtomicU64,
}

impl Link {
    /// Sends a command and waits for its answer, however long that takes.
    ///
    /// # Cancel safety
    /// The command may be carried out, or not.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        let now = Moment::now().as_nanos();
        let _ = self.silent_since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        let mut connection = self.connection.clone();
        connection.req_packed_command(command).await.and_then(Value::extract_error)
    }

    fn answered(&self) {
        self.overdue.store(0, Ordering::Relaxed);
        self.silent_since.store(0, Ordering::Relaxed);
    }

    /// Counts an answer that did not come in time. True if the connection is given up for that.
    /// A caller at its deadline has perhaps not waited long, so the silence must be long, too.
    fn count_overdue(&self, attempt: Duration) -> bool {
        let counted = self.overdue.fetch_add(1, Ordering::Relaxed) + 1;
        let since = self.silent_since.load(Ordering::Relaxed);
        let silent = Moment::from_nanos(since).after(attempt) <= Moment::now();
        counted >= PATIENCE && since != 0 && silent
    }
}

/// One opening of a connection, and the connection that came of it.
#[derive(Default)]
struct Slot {
    opened: OnceLock<Result<Arc<Link>, BackendError>>,
    ready: Notify,
    /// Ends the task that opened it and waits for the end of the runtime.
    end: Notify,
}

impl Slot {
    fn set(&self, opened: Result<Arc<Link>, BackendError>) {
        // The first result is the one that counts.
        let _ = self.opened.set(opened);
        self.ready.notify_waiters();
    }

    async fn link(&self) -> Result<Arc<Link>, BackendError> {
        loop {
            let ready = self.ready.notified();
            if let Some(opened) = self.opened.get() {
                return opened.clone();
            }
            ready.await;
        }
    }
}

/// All connections to one server.
pub(super) struct Links {
    /// The server's address, without a password.
    server: String,
    client: Client,
    /// For servers and proxies that do not speak RESP3.
    client_resp2: Client,
    resp2: AtomicBool,
    driver: Arc<Driver>,
    mailbox: Arc<Mailbox>,
    slots: Mutex<HashMap<Id, Arc<Slot>>>,
}

impl Links {
    pub(super) fn new(parsed: Parsed, driver: Arc<Driver>, mailbox: Mailbox) -> Self {
        let Parsed { server, client, client_resp2 } = parsed;
        let mailbox = Arc::new(mailbox);
        let resp2 =
            client.get_connection_info().redis_settings().protocol() == ProtocolVersion::RESP2;
        let resp2 = AtomicBool::new(resp2);
        Self { server, client, client_resp2, resp2, driver, mailbox, slots: Mutex::default() }
    }

    /// The server's address, without a password.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Whether this manager is told of a grant.
    pub(super) fn are_heard(&self) -> bool {
        self.mailbox.is_live()
    }

    /// Whether it is known that this manager is told of nothing.
    pub(super) fn are_deaf(&self) -> bool {
        self.mailbox.is_deaf()
    }

    /// An answer says that the user may not hand locks on.
    pub(super) fn note_refusal(&self) {
        self.mailbox.note_refusal(&self.server);
    }

    /// Has the driver's connection opened, if it is not open: pushes come over it.
    pub(super) fn attend(self: &Arc<Self>) {
        if !self.are_heard()
            && let Some(runtime) = self.driver.handle()
        {
            drop(self.slot(runtime));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots().len()
    }

    /// The connection of a runtime. Whoever asks first has it opened, by a task of that runtime: a
    /// caller whose future is kept aside keeps nobody else from it.
    ///
    /// # Cancel safety
    /// The connection is opened all the same, for the next caller.
    pub(super) async fn of_runtime(
        self: &Arc<Self>,
        runtime: &Handle,
    ) -> Result<Arc<Link>, BackendError> {
        self.slot(runtime).link().await
    }

    fn slot(self: &Arc<Self>, runtime: &Handle) -> Arc<Slot> {
        let id = runtime.id();
        let mut slots = self.slots();
        if let Some(slot) = slots.get(&id) {
            return Arc::clone(slot);
        }
        let slot = Arc::new(Slot::default());
        slots.insert(id, Arc::clone(&slot));
        drop(slots);
        // The task ends with the runtime, and its entry with it.
        let mut entry = Entry { links: Arc::downgrade(self), slot: Arc::clone(&slot), id };
        let links = Arc::clone(self);
        runtime.spawn(async move {
            loop {
                match links.open_in_time(id).await {
                    Ok(link) => break entry.slot.set(Ok(link)),
                    Err(error) => links.renew(&mut entry).set(Err(error)),
                }
                links.driver.sleep_until(Moment::now().after(PAUSE)).await;
                if links.remove_unless_asked_for(&entry) {
                    return;
                }
            }
            drop(links);
            entry.slot.end.notified().await;
        });
        slot
    }

    /// Gives an entry a slot for another try.
    fn renew(&self, entry: &mut Entry) -> Arc<Slot> {
        let next = Arc::new(Slot::default());
        self.slots().insert(entry.id, Arc::clone(&next));
        std::mem::replace(&mut entry.slot, next)
    }

    /// Removes an entry whose slot nobody waits for but its own task.
    fn remove_unless_asked_for(&self, entry: &Entry) -> bool {
        let mut slots = self.slots();
        // One is the map's, one the task's.
        let asked_for = Arc::strong_count(&entry.slot) > 2;
        if !asked_for {
            slots.remove(&entry.id);
        }
        !asked_for
    }

    async fn open_in_time(self: &Arc<Self>, runtime: Id) -> Result<Arc<Link>, BackendError> {
        let end = Moment::now().after(OPENING);
        self.driver.within(end, self.open(runtime)).await.unwrap_or_else(|| Err(not_accepted()))
    }

    async fn open(self: &Arc<Self>, runtime: Id) -> Result<Arc<Link>, BackendError> {
        // The timers of this runtime may be blocked or paused, so all limits are the driver's.
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let listens = self.driver.handle().is_some_and(|driver| driver.id() == runtime);
        let number = if listens { self.mailbox.number() } else { inbox::NONE };
        let mut resp2 = self.resp2.load(Ordering::Relaxed);
        loop {
            let client = if resp2 { &self.client_resp2 } else { &self.client };
            let mut config = config.clone();
            if listens && !resp2 {
                let links = Arc::downgrade(self);
                config = config.set_push_sender(move |info| {
                    if let Some(links) = links.upgrade() {
                        links.receive(number, runtime, &info);
                    }
                    Ok::<(), Infallible>(())
                });
            }
            match client.get_multiplexed_async_connection_with_config(&config).await {
                Ok(mut connection) => {
                    self.resp2.store(resp2, Ordering::Relaxed);
                    // Before anybody asks over it: a grant may come before the answer, and tokens
                    // say whether they can be handed on.
                    if listens {
                        self.mailbox.open(number, &mut connection, &self.server).await;
                    } else {
                        drop(self.mailbox.look(&mut connection).await);
                    }
                    let (overdue, silent_since) = (AtomicU32::new(0), AtomicU64::new(0));
                    let link = Link { connection, runtime, number, overdue, silent_since };
                    return Ok(Arc::new(link));
                }
                Err(error) if !resp2 && refuses_resp3(&error) => resp2 = true,
                Err(error) => return Err(describe(error)),
            }
        }
    }

    /// Takes what the server has sent unasked. It only moves messages: it runs where the connection
    /// is read.
    fn receive(&self, number: u64, runtime: Id, info: &PushInfo) {
        if info.kind != PushKind::Disconnection {
            return self.mailbox.receive(info);
        }
        // Whoever asks next finds another one, instead of finding out.
        let mut slots = self.slots();
        let opened = slots.get(&runtime).and_then(|slot| slot.opened.get());
        if matches!(opened, Some(Ok(link)) if link.number == number)
            && let Some(slot) = slots.remove(&runtime)
        {
            slot.end.notify_one();
        }
        drop(slots);
        self.mailbox.close(number);
    }

    /// Takes a connection out of use. What is already sent over it may still be answered.
    pub(super) fn retire(&self, link: &Arc<Link>) {
        self.mailbox.close(link.number);
        let mut slots = self.slots();
        let current = slots.get(&link.runtime).and_then(|slot| slot.opened.get());
        if matches!(current, Some(Ok(current)) if Arc::ptr_eq(current, link))
            && let Some(slot) = slots.remove(&link.runtime)
        {
            slot.end.notify_one();
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Id, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        for slot in self.slots().values() {
            slot.end.notify_one();
        }
    }
}

pub(super) fn not_accepted() -> BackendError {
    let message = "the server did not accept a connection in time";
    BackendError::new(BackendErrorKind::Timeout, message)
}

/// The server does not know RESP3, or not even the command that asks for it. `redis` recognises
/// the words of servers before version 7 alone.
fn refuses_resp3(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or_default().to_ascii_lowercase();
    error.kind() == ErrorKind::RESP3NotSupported
        || error.code() == Some("NOPROTO")
        || detail.starts_with("unknown command") && detail.contains("hello")
}

/// A runtime's entry among the connections, which goes when this does.
struct Entry {
    links: Weak<Links>,
    slot: Arc<Slot>,
    id: Id,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let ended = "the runtime that the connection was opened on has ended";
        self.slot.set(Err(BackendError::new(BackendErrorKind::Unreachable, ended)));
        let Some(links) = self.links.upgrade() else { return };
        let mut slots = links.slots();
        if slots.get(&self.id).is_some_and(|slot| Arc::ptr_eq(slot, &self.slot)) {
            slots.remove(&self.id);
        }
    }
}

/// What becomes of a connection after a call over it.
pub(super) fn settle(
    links: &Links,
    link: &Arc<Link>,
    answer: &Result<Value, Failure>,
    attempt: Duration,
) {
    let end = match answer {
        Err(Failure::Closed(_)) => true,
        Err(Failure::Overdue(_)) => link.count_overdue(attempt),
        // A primary that became a replica: the name may lead to the new one.
        Err(Failure::Refused(error) | Failure::Aborted(error))
            if error.kind() == BackendErrorKind::ReadOnly =>
        {
            true
        }
        Ok(_) | Err(Failure::Refused(_) | Failure::Aborted(_) | Failure::Unknown(_)) => {
            link.answered();
            false
        }
    };
    if end {
        links.retire(link);
    }
}
