//! What the server tells a manager unasked, over the connection of the driver.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use redis::{PushInfo, PushKind, RedisError, Value, aio::MultiplexedConnection};
use tokio::sync::mpsc;

use crate::{
    key::LockKey,
    store::{Inbox, Push},
};

/// The number of no connection, and of those that nobody listens on.
pub(super) const NONE: u64 = 0;

/// The sending end of a manager's inbox, and the channel by which others reach it.
pub(super) struct Mailbox {
    channel: String,
    sender: mpsc::UnboundedSender<Push>,
    /// The connection over which somebody who publishes is heard, by its number.
    live: AtomicU64,
    connections: AtomicU64,
    /// Why there are no pushes was said.
    warned: AtomicBool,
}

impl Mailbox {
    /// `channel` is what the tokens of the manager begin with.
    pub(super) fn new(channel: String) -> (Self, Inbox) {
        let (sender, inbox) = mpsc::unbounded_channel();
        let (live, connections) = (AtomicU64::new(NONE), AtomicU64::new(NONE));
        (Self { channel, sender, live, connections, warned: AtomicBool::new(false) }, inbox)
    }

    pub(super) fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire) != NONE
    }

    /// A number for another connection.
    pub(super) fn number(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Listens on a connection. Without success waiting goes on by asking again, so it is no error.
    pub(super) async fn open(
        &self,
        number: u64,
        connection: &mut MultiplexedConnection,
        server: &str,
    ) {
        let opened = match connection.subscribe(&self.channel).await {
            // Who may listen but not tell could not hand a lock on.
            Ok(()) => publish(connection, &self.channel).await,
            Err(error) => Err(error),
        };
        match opened {
            Ok(()) => {
                self.live.store(number, Ordering::Release);
                self.send(Push::Missed);
            }
            Err(error) => self.warn(server, &error),
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

    fn warn(&self, server: &str, error: &RedisError) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            let why = error.detail().map_or_else(|| error.to_string(), str::to_owned);
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
        _ => None,
    }
}
