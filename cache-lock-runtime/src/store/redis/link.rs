//! Connections: one for each runtime that locks are taken from.
//!
//! A connection is served by a task of the runtime that it was opened on, and stands still or ends
//! with it. So each runtime gets its own, when it first asks, and the entry goes when the runtime
//! does. Callers outside of tokio share the driver's.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, ProtocolVersion, RedisError, Value,
    aio::{ConnectionLike, MultiplexedConnection},
};
use tokio::{
    runtime::{Handle, Id},
    sync::{Notify, OnceCell},
};

use super::failure::{Failure, describe};
use crate::error::{BackendError, BackendErrorKind};

/// So many answers in a row that do not come in time end a connection: nothing else ends one
/// whose other side is gone without a word.
const PATIENCE: u32 = 2;

/// An open connection.
pub(super) struct Link {
    connection: MultiplexedConnection,
    runtime: Id,
    overdue: AtomicU32,
}

impl Link {
    /// Sends a command and waits for its answer, however long that takes.
    ///
    /// # Cancel safety
    /// The command may be carried out, or not.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        let mut connection = self.connection.clone();
        connection.req_packed_command(command).await.and_then(Value::extract_error)
    }

    /// Counts an answer that did not come in time. True if that is one too many.
    pub(super) fn count_overdue(&self) -> bool {
        self.overdue.fetch_add(1, Ordering::Relaxed) + 1 >= PATIENCE
    }
}

/// The place of one runtime's connection.
#[derive(Default)]
struct Slot {
    link: OnceCell<Arc<Link>>,
    /// Ends the task that waits for the end of the runtime.
    end: Arc<Notify>,
}

/// All connections to one server.
pub(super) struct Links {
    client: Client,
    /// For servers and proxies that do not speak RESP3.
    client_resp2: Client,
    resp2: AtomicBool,
    slots: Mutex<HashMap<Id, Arc<Slot>>>,
}

impl Links {
    pub(super) fn new(client: Client, client_resp2: Client) -> Self {
        let resp2 =
            client.get_connection_info().redis_settings().protocol() == ProtocolVersion::RESP2;
        let resp2 = AtomicBool::new(resp2);
        Self { client, client_resp2, resp2, slots: Mutex::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.slots().len()
    }

    /// The connection of the runtime that this is called on; opens it, or waits for whoever is
    /// opening it.
    ///
    /// # Cancel safety
    /// Nothing is lost: another caller opens it.
    pub(super) async fn of_runtime(
        self: &Arc<Self>,
        runtime: &Handle,
    ) -> Result<Arc<Link>, BackendError> {
        let slot = self.slot(runtime);
        // Opening is rare, and its future large: boxed, it does not make all others large.
        let link = slot.link.get_or_try_init(|| Box::pin(self.open(runtime.id()))).await?;
        Ok(Arc::clone(link))
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
        // This task ends with the runtime, and its local with it.
        let entry = Entry { links: Arc::downgrade(self), slot: Arc::downgrade(&slot), id };
        let end = Arc::clone(&slot.end);
        runtime.spawn(async move {
            let _entry = entry;
            end.notified().await;
        });
        slot
    }

    async fn open(&self, runtime: Id) -> Result<Arc<Link>, BackendError> {
        // The timers of this runtime may be blocked or paused, so all limits are set by callers.
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let mut resp2 = self.resp2.load(Ordering::Relaxed);
        loop {
            let client = if resp2 { &self.client_resp2 } else { &self.client };
            match client.get_multiplexed_async_connection_with_config(&config).await {
                Ok(connection) => {
                    self.resp2.store(resp2, Ordering::Relaxed);
                    let overdue = AtomicU32::new(0);
                    return Ok(Arc::new(Link { connection, runtime, overdue }));
                }
                Err(error) if !resp2 && refuses_resp3(&error) => resp2 = true,
                Err(error) => return Err(describe(error)),
            }
        }
    }

    /// Takes a connection out of use. What is already sent over it may still be answered.
    pub(super) fn retire(&self, link: &Arc<Link>) {
        let mut slots = self.slots();
        let current = slots.get(&link.runtime).and_then(|slot| slot.link.get());
        if current.is_some_and(|current| Arc::ptr_eq(current, link))
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
    slot: Weak<Slot>,
    id: Id,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Some(links) = self.links.upgrade() else { return };
        let mut slots = links.slots();
        if slots.get(&self.id).is_some_and(|slot| Arc::as_ptr(slot) == self.slot.as_ptr()) {
            slots.remove(&self.id);
        }
    }
}

/// What becomes of a connection after a call over it.
pub(super) fn settle(links: &Links, link: &Arc<Link>, answer: &Result<Value, Failure>) {
    let end = match answer {
        Err(Failure::Closed(_)) => true,
        Err(Failure::Overdue(_)) => link.count_overdue(),
        // A primary that became a replica: the name may lead to the new one.
        Err(Failure::Refused(error)) if error.kind() == BackendErrorKind::ReadOnly => true,
        Ok(_) | Err(Failure::Refused(_)) => {
            link.overdue.store(0, Ordering::Relaxed);
            false
        }
    };
    if end {
        links.retire(link);
    }
}
