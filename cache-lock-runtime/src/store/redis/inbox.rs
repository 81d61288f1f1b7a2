//! What the server tells a manager unasked, over the connection of the driver.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use redis::{
    ErrorKind, PushInfo, PushKind, RedisError, Value,
    aio::{ConnectionLike, MultiplexedConnection},
};
use tokio::sync::mpsc;

use super::failure::NO_TIME;
use crate::{
    key::LockKey,
    log,
    owner::TokenSource,
    protocol::messages::{Inbox, Push},
};

/// The number of no connection.
const NONE: u64 = 0;

/// The sending end of a manager's inbox, and the channel by which others reach it.
pub(super) struct Mailbox {
    /// The manager. What its tokens begin with is the channel.
    tokens: Arc<TokenSource>,
    sender: mpsc::UnboundedSender<Push>,
    /// The number of the connection on which pushes are heard.
    live: AtomicU64,
    connections: AtomicU64,
    /// The user may not publish.
    may_not_publish: AtomicBool,
    /// The user may not use the waiting lists.
    may_not_list: AtomicBool,
    /// The last connection that was to listen does not.
    hears_nothing: AtomicBool,
    /// The connection that is to listen, by its number, and was not refused.
    to_be_opened: AtomicU64,
    /// Why there are no pushes was said.
    warned: AtomicBool,
    /// The user may ask how many subscribe to a channel.
    may_count: AtomicBool,
    /// The user may not read a record.
    may_not_read: AtomicBool,
    /// That scripts may not call TIME was said.
    warned_of_time: AtomicBool,
    /// The last connection over which [`LOOK`] was sent broke.
    broke: AtomicBool,
}

impl Mailbox {
    pub(super) fn new(tokens: Arc<TokenSource>) -> (Self, Inbox) {
        let (sender, inbox) = mpsc::unbounded_channel();
        let mailbox = Self {
            tokens,
            sender,
            live: AtomicU64::new(NONE),
            connections: AtomicU64::new(NONE),
            may_not_publish: AtomicBool::new(false),
            may_not_list: AtomicBool::new(false),
            hears_nothing: AtomicBool::new(false),
            to_be_opened: AtomicU64::new(NONE),
            warned: AtomicBool::new(false),
            may_count: AtomicBool::new(false),
            may_not_read: AtomicBool::new(false),
            warned_of_time: AtomicBool::new(false),
            broke: AtomicBool::new(false),
        };
        (mailbox, inbox)
    }

    /// The manager is told of its turn.
    pub(super) fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire) != NONE && !self.tokens.is_mute()
    }

    /// It is known that the manager is never told of its turn. Until it has tried to listen, it may be.
    pub(super) fn is_deaf(&self) -> bool {
        self.hears_nothing.load(Ordering::Relaxed) || self.tokens.is_mute()
    }

    /// The server could not be listened to over this connection, and did not refuse it.
    pub(super) fn is_to_be_opened(&self, number: u64) -> bool {
        self.to_be_opened.load(Ordering::Relaxed) == number
    }

    /// A number for another connection.
    pub(super) fn number(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn rights(&self) -> Rights {
        let counts = self.may_count.load(Ordering::Relaxed);
        Rights { counts, reads: !self.may_not_read.load(Ordering::Relaxed) }
    }

    /// A connection is to be opened that listens.
    pub(super) fn prepare(&self) {
        self.tokens.begin_to_listen();
    }

    /// Sees over a new connection whether the user may tell others, and what scripts may do. In one trip.
    pub(super) async fn look(
        &self,
        connection: &mut MultiplexedConnection,
        server: &str,
    ) -> Result<(), RedisError> {
        let channel = self.tokens.channel();
        let mut commands = redis::pipe();
        commands.cmd("PUBLISH").arg(&channel).arg("open");
        // A proxy may close a connection on which a script without keys comes.
        let looks = !self.broke();
        if looks {
            commands.cmd("EVAL").arg(LOOK).arg(0).arg(&channel);
        }
        let answers = connection.req_packed_commands(&commands, 0, commands.len()).await;
        let broke = looks && answers.as_ref().is_err_and(is_over);
        self.broke.store(broke, Ordering::Relaxed);
        let mut answers = answers?.into_iter().map(Value::extract_error);
        let may_tell = answers.next().unwrap_or(Ok(Value::Nil)).map(drop);
        if let Some(seen) = answers.next() {
            self.note_scripts(seen, server);
        }
        match &may_tell {
            Ok(()) => self.set(&self.may_not_publish, false),
            Err(error) if is_denied(error) => self.set(&self.may_not_publish, true),
            // A server that is busy, or a connection that breaks, says nothing about rights.
            Err(_) => {}
        }
        may_tell
    }

    /// The last connection that was looked over broke, perhaps for a script without keys.
    pub(super) fn broke(&self) -> bool {
        self.broke.load(Ordering::Relaxed)
    }

    /// Takes note of the answer to [`LOOK`].
    fn note_scripts(&self, seen: Result<Value, RedisError>, server: &str) {
        // A server that is busy says nothing about rights.
        let Ok(Value::Array(seen)) = seen else { return };
        let [Value::BulkString(time), Value::BulkString(count), Value::BulkString(get)] = &seen[..]
        else {
            return;
        };
        self.may_not_read.store(is_command_denied(get), Ordering::Relaxed);
        self.may_count.store(count.is_empty(), Ordering::Relaxed);
        if !time.is_empty() && !self.warned_of_time.swap(true, Ordering::Relaxed) {
            let why = &*String::from_utf8_lossy(time);
            log::warn!(server, why, "no lock can be acquired: {NO_TIME}");
        }
    }

    fn set(&self, flag: &AtomicBool, value: bool) {
        flag.store(value, Ordering::Relaxed);
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        self.tokens.set_mute(is_set(&self.may_not_publish) || is_set(&self.may_not_list));
    }

    /// Listens on a connection, or on one that is there for nothing else. Without success waiting
    /// goes on by asking again, so it is no error, unless the connection breaks.
    pub(super) async fn open(
        &self,
        number: u64,
        connection: &mut MultiplexedConnection,
        apart: Option<&mut MultiplexedConnection>,
        server: &str,
    ) -> Result<Hearing, RedisError> {
        let is_beside = apart.is_none();
        let channel = self.tokens.channel();
        let may_listen = match apart {
            Some(apart) => apart.subscribe(channel).await,
            None => connection.subscribe(channel).await,
        };
        let listens = may_listen.is_ok();
        if let Err(error) = &may_listen
            && is_over(error)
        {
            return may_listen.map(|()| Hearing::None);
        }
        // A user that may listen but not publish could not hand a lock on.
        let may_tell = self.look(connection, server).await;
        if let Err(error) = &may_tell {
            if is_over(error) {
                return may_tell.map(|()| Hearing::None);
            }
            if listens && is_beside && is_refused_beside(error) {
                log::warn!(
                    server,
                    "the server takes no other commands on a connection that is subscribed; push \
                     notifications have a connection of their own"
                );
                return Ok(Hearing::NoneBeside);
            }
        }
        // Rights may have been given since. If not, the next answer tells.
        self.set(&self.may_not_list, false);
        let opened = may_listen.and(may_tell);
        self.hears_nothing.store(opened.is_err(), Ordering::Relaxed);
        let passes = opened.as_ref().is_err_and(|error| !is_final(error));
        self.to_be_opened.store(if passes { number } else { NONE }, Ordering::Relaxed);
        match opened {
            Ok(()) => {
                self.live.store(number, Ordering::Release);
                self.send(Push::Missed);
                return Ok(Hearing::All);
            }
            Err(error) if passes => {
                log::debug!(server, %error, "SUBSCRIBE or PUBLISH is refused for now; trying again");
            }
            Err(error) => self.warn(server, error.detail().unwrap_or(&error.to_string())),
        }
        Ok(Hearing::None)
    }

    /// A connection ends when PUBLISH is sent over it.
    pub(super) fn cannot_tell(&self, server: &str) {
        self.set(&self.may_not_publish, true);
        self.hears_nothing.store(true, Ordering::Relaxed);
        self.warn(server, "the connection is closed when HELLO or PUBLISH is sent");
    }

    /// Pushes are not refused, and there are none for long.
    pub(super) fn warn_of_delay(&self, server: &str) {
        if !self.is_live() {
            self.warn(server, "the server does not take SUBSCRIBE and PUBLISH for now");
        }
    }

    /// An answer says that the user may not read the waiting lists, or not publish. The rights may have changed
    /// since the connection was opened, and those on the lists are unknown until then.
    pub(super) fn note_refusal(&self, server: &str) {
        if !self.tokens.is_mute() {
            self.set(&self.may_not_list, true);
            self.warn(server, "the user may not use the waiting lists");
        }
    }

    /// A connection is over. Called before the next one is begun, which listens to another name perhaps.
    pub(super) fn close(&self, number: u64) {
        let (order, other) = (Ordering::AcqRel, Ordering::Relaxed);
        let closed = self.tokens.end_listening(|| {
            number != NONE && self.live.compare_exchange(number, NONE, order, other).is_ok()
        });
        if closed {
            self.send(Push::Missed);
        }
    }

    fn warn(&self, server: &str, why: &str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            log::warn!(
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
        // After the end of the manager nothing reads it.
        let _ = self.sender.send(push);
    }
}

/// Changes nothing. Returns why TIME, PUBSUB NUMSUB and GET are refused, or "".
const LOOK: &str = "local time, count = redis.pcall('TIME'), redis.pcall('PUBSUB', 'NUMSUB', ARGV[1]) \
                    local get = redis.pcall('GET', ARGV[1]) \
                    return {time.err or '', count.err or '', type(get) == 'table' and get.err or ''}";

/// What the user may do, as far as a new connection tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rights {
    /// Ask how many subscribe to a channel.
    pub(super) counts: bool,
    /// Read a record, without which no lock can be released.
    pub(super) reads: bool,
}

/// The user may not run the command in a script, whatever its key is.
fn is_command_denied(said: &[u8]) -> bool {
    let said = String::from_utf8_lossy(said);
    // The latter from version 7.2 on.
    said.contains("can't run this command") || said.contains("no permissions to run the")
}

/// What is heard over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hearing {
    /// Pushes arrive.
    All,
    /// There are no pushes.
    None,
    /// The server takes no other commands on a connection that is subscribed.
    NoneBeside,
}

/// The connection is over.
pub(super) fn is_over(error: &RedisError) -> bool {
    error.is_io_error() || error.is_unrecoverable_error()
}

/// The user may not, or the server has no such command.
fn is_denied(error: &RedisError) -> bool {
    let unknown = || error.detail().is_some_and(|said| said.starts_with("unknown command"));
    error.code() == Some("NOPERM") || unknown()
}

/// It will not be otherwise while the connection lasts: a denial, or the driver's own refusal where
/// the protocol has no pushes.
fn is_final(error: &RedisError) -> bool {
    is_denied(error) || !matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

/// A server without RESP3's liberty to send any command on a connection that is subscribed refuses
/// them in these words, as every server does in RESP2.
fn is_refused_beside(error: &RedisError) -> bool {
    error.detail().is_some_and(|said| said.contains("allowed in this context"))
}

/// Reads what the scripts publish: what it is, a token and a key.
fn read(text: &str) -> Option<Push> {
    let (what, rest) = text.split_once(' ')?;
    let (token, key) = rest.split_once(' ')?;
    let (token, key) = (token.to_owned(), LockKey::from(key));
    match what {
        "grant" => Some(Push::Grant { key, token }),
        "demand" => Some(Push::Demand { key, token }),
        "yielded" => Some(Push::Yielded { key, token }),
        _ => None,
    }
}
