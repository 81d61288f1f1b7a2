//! The connection of one runtime, from its opening to the end of the runtime.

use std::sync::{Arc, OnceLock, Weak, atomic::AtomicBool};

use tokio::{runtime::Id, sync::Notify};

use super::{Connection, Connections};
use crate::{
    error::{BackendError, BackendErrorKind},
    signal::Signal,
};

/// One opening of a connection, and the connection that came of it.
#[derive(Default)]
pub(super) struct OpeningSlot {
    pub(super) opened: OnceLock<Result<Arc<Connection>, BackendError>>,
    /// The runtime cannot have a connection: it was built without I/O.
    pub(super) without_io: AtomicBool,
    pub(super) ready: Signal,
    /// Ends the task that opens it and waits for the end of the runtime.
    pub(super) end: Arc<Notify>,
}

impl OpeningSlot {
    pub(super) fn set(&self, opened: Result<Arc<Connection>, BackendError>) {
        // The first result is the one that counts.
        let _ = self.opened.set(opened);
        self.ready.give();
    }

    pub(super) async fn connection(&self) -> Result<Arc<Connection>, BackendError> {
        loop {
            let ready = self.ready.given();
            if let Some(opened) = self.opened.get() {
                return opened.clone();
            }
            ready.await;
        }
    }
}

/// A runtime's entry among the connections, which goes when this does.
pub(super) struct RuntimeEntry {
    pub(super) connections: Weak<Connections>,
    pub(super) slot: Arc<OpeningSlot>,
    pub(super) id: Id,
}

impl Drop for RuntimeEntry {
    fn drop(&mut self) {
        let ended = "the runtime that the connection was opened on has ended";
        self.slot.set(Err(BackendError::new(BackendErrorKind::Unreachable, ended)));
        if let Some(connections) = self.connections.upgrade() {
            let mut slots = connections.slots.lock();
            if slots.get(&self.id).is_some_and(|slot| Arc::ptr_eq(slot, &self.slot)) {
                slots.remove(&self.id);
            }
        }
        if let Some(Ok(connection)) = self.slot.opened.get() {
            connection.window.close();
        }
    }
}
