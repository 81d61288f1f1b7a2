//! An open connection: how a request goes over it, and when its answers say that it is of no more use.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{Cmd, RedisError, Value, aio::MultiplexedConnection};
use tokio::runtime::Handle;

use super::Connections;
use crate::{
    clock::Instant,
    driver::Driver,
    error::BackendErrorKind,
    signal::shielded,
    store::redis::{failure::Failure, window::Window},
};

/// So many answers in a row that do not come in time end a connection, if there was none at all
/// for the time of an attempt: nothing else ends one whose other side is gone without a word.
const PATIENCE: u32 = 2;

/// An open connection.
pub(in crate::store::redis) struct Connection {
    pub(super) multiplexed: MultiplexedConnection,
    /// The runtime that serves it.
    pub(super) runtime: Handle,
    /// The requests for locks, and their releases, that are in flight over it.
    pub(in crate::store::redis) window: Arc<Window>,
    /// The number under which it is known to the mailbox.
    pub(super) number: u64,
    /// The connection on which the server is listened to, if it takes no other commands there.
    pub(super) apart: Option<MultiplexedConnection>,
    /// An answer has come over it.
    pub(super) proven: AtomicBool,
    overdue: AtomicU32,
    /// When something was sent to which, or after which, nothing was answered; 0 for never.
    silent_since: AtomicU64,
}

impl Connection {
    pub(super) fn new(
        multiplexed: MultiplexedConnection,
        apart: Option<MultiplexedConnection>,
        number: u64,
        driver: Arc<Driver>,
    ) -> Arc<Self> {
        Arc::new(Self {
            multiplexed,
            runtime: Handle::current(),
            window: Window::new(driver),
            number,
            apart,
            proven: AtomicBool::new(false),
            overdue: AtomicU32::new(0),
            silent_since: AtomicU64::new(0),
        })
    }

    /// Sends a command and waits for its answer, however long that takes.
    ///
    /// # Cancel safety
    /// The command may be carried out, or not.
    pub(in crate::store::redis) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        let now = Instant::now().as_nanos();
        let _ = self.silent_since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        let mut multiplexed = self.multiplexed.clone();
        let sending = pin!(multiplexed.send_packed_command(command));
        shielded(sending).await.and_then(Value::extract_error)
    }

    fn answered(&self) {
        self.proven.store(true, Ordering::Relaxed);
        self.overdue.store(0, Ordering::Relaxed);
        self.silent_since.store(0, Ordering::Relaxed);
    }

    /// Counts an answer that did not come in time. True if the connection is given up for that.
    /// A caller at its deadline has perhaps not waited long, so the silence must be long, too.
    fn count_overdue(&self, attempt: Duration) -> bool {
        let counted = self.overdue.fetch_add(1, Ordering::Relaxed) + 1;
        let since = self.silent_since.load(Ordering::Relaxed);
        let silent = Instant::from_nanos(since) + attempt <= Instant::now();
        counted >= PATIENCE && since != 0 && silent
    }
}

/// What becomes of a connection after a call over it.
pub(in crate::store::redis) fn settle(
    connections: &Connections,
    connection: &Arc<Connection>,
    answer: &Result<Value, Failure>,
    attempt: Duration,
) {
    match answer {
        Err(Failure::Closed(error)) => {
            let proven = connection.proven.load(Ordering::Relaxed);
            connections.retire(connection, (!proven).then_some(error));
        }
        Err(Failure::Overdue(_)) => {
            connection.window.overdue();
            if connection.count_overdue(attempt) {
                connections.retire(connection, None);
            }
        }
        // A primary that became a replica: the name may lead to the new one.
        Err(Failure::Refused(error) | Failure::Aborted(error))
            if error.kind() == BackendErrorKind::ReadOnly =>
        {
            connections.retire(connection, Some(error));
        }
        Ok(_) | Err(Failure::Refused(_) | Failure::Aborted(_) | Failure::Unknown(_)) => {
            connection.answered();
        }
    }
}
