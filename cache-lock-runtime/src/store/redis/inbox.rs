//! What the server tells a manager unasked, over the connection of the driver.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use redis::{PushInfo, PushKind, RedisError, Value, aio::MultiplexedConnection};
use tokio::sync::mpsc;

use crate::{
    key::LockKey,
    owner::Owners,
    store::{Inbox, Push},
};

/// The number of no connection, and of those that nobody listens on.
pub(super) const NONE: u64 = 0;

/// The sending end of a manager's inbox, and the channel by which others reach it.
pub(super) struct Mailbox {
    /// The manager. What its tokens begin with is the channel.
    owners: Arc<Owners>,
    sender: mpsc::UnboundedSender<Push>,
    /// The connection over which somebody who publishes is heard, by its number.
    live: AtomicU64,
    connections: AtomicU64,
    /// Why there are no pushes was said.
    warned: AtomicBool,
}

impl Mailbox {
    pub(super) fn new(owners: Arc<Owners>) -> (Self, Inbox) {
        let (sender, inbox) = mpsc::unbounded_channel();
        let (live, connections) = (AtomicU64::new(NONE), AtomicU64::new(NONE));
        (Self { owners, sender, live, connections, warned: AtomicBool::new(false) }, inbox)
    }

    /// The manager is told of its turn.
    pub(super) fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire) != NONE && !self.owners.is_mute()
    }

    /// A number for another connection.
    pub(super) fn number(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sees over a new connection whether the user may tell others.
    pub(super) async fn look(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
        let may_tell = publish(connection, &self.owners.channel()).await;
        // A connection that breaks says nothing about rights.
        if !matches!(&may_tell, Err(error) if error.is_unrecoverable_error()) {
            self.owners.set_mute(may_tell.is_err());
        }
        may_tell
    }

    /// Listens on a connection. Without success waiting goes on by asking again, so it is no error.
    pub(super) async fn open(
        &self,
        number: u64,
        connection: &mut MultiplexedConnection,
        server: &str,
    ) {
        let may_listen = connection.subscribe(self.owners.channel()).await;
        // Who may listen but not tell could not hand a lock on.
        let may_tell = self.look(connection).await;
        match may_listen.and(may_tell) {
            Ok(()) => {
                self.live.store(number, Ordering::Release);
                self.send(Push::Missed);
            }
            Err(error) => {
                self.warn(server, error.detail().unwrap_or(&error.to_string()));
            }
        }
    }

    /// An answer says that the user may not look who waits, or not tell them. It may have been
    /// otherwise when the connection was opened, and of the lists nothing is known then.
    pub(super) fn is_refused(&self, server: &str) {
        if !self.owners.is_mute() {
            self.owners.set_mute(true);
            self.warn(server, "the user may not use the waiting lists");
        }
    }

    /// A connection is over.
    pub(super) fn close(&self, number: u64) {
        let closed =
            self.live.compare_exchange(number, NONE, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if closed && number != NONE {
            self.send(Push::Missed);
        }
    }

    fn warn(&self, server: &str, why: &str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                server,
                why,
                "no push notifications: waiters ask the server again and again; they need RESP3, \
                 and a user with the rules \
                 `&cl1:* +subscribe +publish +zadd +zscore +zrange +zrem +zcard`"
            );
        }
    }

    /// Takes what the server has sent.
    pub(super) fn receive(&self, info: &PushInfo) {
        if info.kind == PushKind::Message
            && let Some(Value::BulkString(text)) = info.data.get(1)
            && let Some(push) = std::str::from_utf8(text).ok().and_then(read)
        {
            self.send(push);
        }
    }

    fn send(&self, push: Push) {
        // Nobody reads it any more when the manager ends.
        let _ = self.sender.send(push);
    }
}

async fn publish(connection: &mut MultiplexedConnection, channel: &str) -> Result<(), RedisError> {
    redis::cmd("PUBLISH").arg(channel).arg("open").exec_async(connection).await
}

/// Reads what the scripts publish: what it is, a token and a key.
fn read(text: &str) -> Option<Push> {
    let (what, rest) = text.split_once(' ')?;
    let (token, key) = rest.split_once(' ')?;
    let (token, key) = (token.to_owned(), LockKey::from(key));
    match what {
        "grant" => Some(Push::Grant { key, token }),
        "demand" => Some(Push::Demand { key, token }),
        "soon" => Some(Push::Soon { key, token }),
        _ => None,
    }
}
