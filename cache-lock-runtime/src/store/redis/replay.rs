//! Walks through the model of the protocol (`models/`), replayed on the scripts: whatever the
//! model's server carries out, a real one does, through the code of the store that builds calls and
//! reads answers and pushes. Answers, pushes and records must be the model's after each.
//!
//! No time goes by. A tick of the model is half a second here, so that a claim, the cap of a timer
//! and the life of a waiting list are as many ticks in the scripts as they are in the model: nothing
//! is scaled. Between two requests the records have no end. Right before each, in one transaction
//! with it, they are given what is left of them by the model's clock, and right after it is read
//! what the script has made of that.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    time::Duration,
};

use lock_model::{Answer, Config, Push as ModelPush, ServedView, Times, Token, View};
use redis::{Connection, PushInfo, Value};
use test_support::{PatternSubscriber, RedisServer};

use super::{
    call::{Call, read_acquired, read_extended, read_released},
    inbox::Mailbox,
    inbox::Rights,
    script::Scripts,
};
use crate::{
    clock::Instant,
    fence::Numbers,
    key::LockKey,
    owner::{OwnerToken, TokenSource},
    protocol::messages::{
        AcquireRequest, AcquireResponse, Extended, Extension, Inbox, Push, ReleaseRequest,
    },
};

mod scripts;

/// What a tick of the model is here.
pub(crate) const TICK: Duration = Duration::from_millis(500);

/// The lengths of time of the code, in ticks.
pub(crate) const TIMES: Times = Times { expire: 4, drift: 1, claim: 1, cap: 2, wait: 10 };

const TICK_MILLISECONDS: i64 = 500;

/// The token of a holder that knows nothing of the protocol.
const FOREIGN: &str = "another library";
/// Its user may do all.
const ALL: Rights = Rights { counts: true, reads: true };

/// What a manager asks of the server.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Acquire {
        request: AcquireRequest,
        /// The asker can be told of its turn.
        heard: bool,
    },
    Extension(Extension),
    Release(ReleaseRequest),
}

/// What the server answers, as the store reads it.
#[derive(Clone, Debug)]
pub(crate) enum Answered {
    Acquired(AcquireResponse),
    Extended(Extended),
    Released(bool),
}

/// The real token for each of the model's.
pub(crate) type Tokens = HashMap<Token, OwnerToken>;

/// A real server, and a real subscription for the inbox of each manager.
pub(crate) struct ReplayServer {
    connection: Connection,
    inboxes: Vec<Subscriber>,
    scripts: Scripts,
    pub(crate) key: LockKey,
    records: Records,
    /// The fencing number for each of the model's, and the last one.
    numbers: HashMap<u16, i64>,
    last_number: i64,
    /// How many numbers are reserved for each of the model's, where that reserves several.
    pub(crate) scale: u16,
    /// In every other walk: PUBLISH counts it, and a dead manager is not taken for a living one.
    watcher: Option<PatternSubscriber>,
    redis: RedisServer,
}

/// `L`, `F` and `W`, and what is left of them in milliseconds.
#[derive(Debug, Default)]
struct Records {
    lock: Option<(String, i64)>,
    fence: Option<i64>,
    waiting: Vec<String>,
    waiting_left: i64,
}

struct Subscriber {
    connection: Connection,
    received: Receiver<PushInfo>,
    channel: String,
    mailbox: Mailbox,
    pushes: Inbox,
    is_open: bool,
}

impl ReplayServer {
    /// A server for so many managers. Without `push` it permits none.
    pub(crate) fn start(managers: &[Arc<TokenSource>], push: bool) -> Self {
        // A user that is not told otherwise has no right to any channel.
        let redis = RedisServer::builder().user("silent", "silent", "~* +@all").start();
        let url = if push { redis.url() } else { redis.url_of_user("silent") };
        let connect = |url: &str| {
            let client = redis::Client::open(url).expect("the URL is one");
            client.get_connection().expect("the server is there")
        };
        let mut inboxes = Vec::new();
        for tokens in managers {
            let mut connection = connect(&format!("{}?protocol=resp3", redis.url()));
            let (sender, received) = channel();
            connection.set_push_sender(sender);
            let channel = tokens.channel();
            let (mailbox, pushes) = Mailbox::new(Arc::clone(tokens));
            let is_open = false;
            inboxes.push(Subscriber { connection, received, channel, mailbox, pushes, is_open });
        }
        Self {
            connection: connect(&url),
            inboxes,
            scripts: Scripts::new(),
            key: LockKey::from("replayed"),
            records: Records::default(),
            numbers: HashMap::new(),
            last_number: 0,
            scale: 1,
            watcher: None,
            redis,
        }
    }

    /// Begins another walk: without data, but for the record of the foreign holder.
    pub(crate) fn begin(&mut self, config: &Config) {
        self.flush();
        self.numbers.clear();
        self.watcher = match self.watcher.take() {
            None => Some(PatternSubscriber::of(&self.redis)),
            Some(_) => None,
        };
        if config.foreign {
            let left = i64::from(config.times.cap) * TICK_MILLISECONDS;
            self.do_now(redis::cmd("SET").arg(self.key.as_str()).arg(FOREIGN));
            self.records.lock = Some((FOREIGN.to_owned(), left));
        }
        for manager in 0..self.inboxes.len() {
            if config.push { self.open_inbox(manager) } else { self.close_inbox(manager) }
        }
    }

    pub(crate) fn open_inbox(&mut self, manager: usize) {
        let inbox = &mut self.inboxes[manager];
        inbox.forget_pushes();
        if !inbox.is_open {
            inbox.connection.subscribe_resp3(&inbox.channel).expect("subscribed");
            inbox.is_open = true;
        }
    }

    pub(crate) fn close_inbox(&mut self, manager: usize) {
        let inbox = &mut self.inboxes[manager];
        if inbox.is_open {
            inbox.connection.unsubscribe_resp3(&inbox.channel).expect("unsubscribed");
            inbox.is_open = false;
            inbox.forget_pushes();
        }
    }

    pub(crate) fn flush(&mut self) {
        self.do_now(&redis::cmd("FLUSHALL"));
        self.records = Records::default();
    }

    pub(crate) fn delete_lock(&mut self) {
        self.do_now(redis::cmd("DEL").arg(self.key.as_str()));
        self.records.lock = None;
    }

    /// Half a second goes by.
    pub(crate) fn tick(&mut self) {
        if let Some((_, left)) = &mut self.records.lock {
            *left -= TICK_MILLISECONDS;
            if *left <= 0 {
                self.delete_lock();
            }
        }
        if !self.records.waiting.is_empty() {
            self.records.waiting_left -= TICK_MILLISECONDS;
            if self.records.waiting_left <= 0 {
                self.do_now(redis::cmd("DEL").arg(self.key.waiting_key().to_string()));
                self.records.waiting.clear();
                self.records.waiting_left = 0;
            }
        }
    }

    /// Carries a request out. Returns the answer, and the pushes that came, by manager.
    pub(crate) fn serve(&mut self, asked: &Asked) -> Result<(Value, Vec<Vec<Push>>), String> {
        let (lock, waiting) = (self.key.as_str().to_owned(), self.key.waiting_key().to_string());
        let call = self.call(asked).in_full().expect("it calls a script");
        let mut transaction = redis::pipe();
        transaction.atomic();
        if let Some((_, left)) = self.records.lock {
            transaction.cmd("PEXPIRE").arg(&lock).arg(left).ignore();
        }
        if !self.records.waiting.is_empty() {
            transaction.cmd("PEXPIRE").arg(&waiting).arg(self.records.waiting_left).ignore();
        }
        if let Some(last) = self.records.fence.filter(|_| self.scale > 1) {
            // A second without a reservation, from which many can be made.
            self.last_number = last - 1_000_000;
            let fence = self.key.fence_key().to_string();
            transaction.cmd("SET").arg(fence).arg(self.last_number).arg("KEEPTTL").ignore();
        }
        transaction.add_command(call);
        transaction.cmd("TIME");
        transaction.cmd("GET").arg(&lock);
        transaction.cmd("PTTL").arg(&lock);
        transaction.cmd("ZRANGE").arg(&waiting).arg(0).arg(-1);
        transaction.cmd("PTTL").arg(&waiting);
        transaction.cmd("GET").arg(self.key.fence_key().to_string());
        transaction.cmd("PTTL").arg(self.key.fence_key().to_string());
        transaction.cmd("PERSIST").arg(&lock).ignore();
        transaction.cmd("PERSIST").arg(&waiting).ignore();
        type Found = (Value, (i64, i64), Option<String>, i64, Vec<String>, i64, Option<i64>, i64);
        let found: Found = transaction
            .query(&mut self.connection)
            .map_err(|error| format!("{asked:?} failed: {error}"))?;
        let (answer, time, lock, lock_left, waiting, waiting_left, fence, fence_left) = found;
        let has_end = |exists: bool, left: i64| exists == (left > 0);
        if !has_end(lock.is_some(), lock_left)
            || !has_end(!waiting.is_empty(), waiting_left)
            || !has_end(fence.is_some(), fence_left)
        {
            return Err(format!("{asked:?} leaves a record without an end"));
        }
        if fence > Some(time.0 * 1_000_000 + time.1) {
            return Err(format!("{asked:?} reserves numbers that lie ahead of the time"));
        }
        // The microseconds since the beginning of the transaction are as good as none.
        let whole =
            |left: i64| (left + TICK_MILLISECONDS - 1) / TICK_MILLISECONDS * TICK_MILLISECONDS;
        self.records = Records {
            lock: lock.map(|token| (token, whole(lock_left))),
            fence,
            waiting,
            waiting_left: whole(waiting_left.max(0)),
        };
        Ok((answer, self.pushes()))
    }

    fn call(&self, asked: &Asked) -> Call<'_> {
        match asked {
            Asked::Acquire { request, heard } => {
                Call::acquire(&self.scripts, request, request.wait && *heard, ALL)
            }
            Asked::Extension(extension) => {
                Call::extend(&self.scripts, std::slice::from_ref(extension))
            }
            Asked::Release(request) => Call::release(&self.scripts, &self.key, request, ALL),
        }
    }

    /// What has arrived in the inboxes since the last time: what was published comes before the
    /// answer to a later command on the same connection.
    fn pushes(&mut self) -> Vec<Vec<Push>> {
        let ping = redis::cmd("PING").get_packed_command();
        for inbox in self.inboxes.iter_mut().filter(|inbox| inbox.is_open) {
            inbox.connection.send_packed_command(&ping).expect("the connection stands");
        }
        let read = |inbox: &mut Subscriber| {
            let mut answered = !inbox.is_open;
            while !answered {
                let read = inbox.connection.recv_response().expect("the connection stands");
                answered = !matches!(read, Value::Push { .. });
            }
            for info in inbox.received.try_iter() {
                inbox.mailbox.receive(&info);
            }
            std::iter::from_fn(|| inbox.pushes.try_recv().ok()).collect()
        };
        self.inboxes.iter_mut().map(read).collect()
    }

    fn do_now(&mut self, command: &redis::Cmd) {
        command.exec(&mut self.connection).expect("the server is there");
    }

    /// Whether the answer to a request is the model's.
    pub(crate) fn check_answer(
        &mut self,
        asked: &Asked,
        value: &Value,
        served: &ServedView,
    ) -> Result<(), String> {
        let told = || format!("{asked:?} was answered {value:?} instead of {:?}", served.answer);
        let answered = asked.read(value, Instant::from_nanos(0)).ok_or_else(told)?;
        let agrees = match (served.answer, &answered) {
            (Answer::Got { block, others }, Answered::Acquired(AcquireResponse::Got { numbers, others: told, .. })) => {
                // Where the lock is free and one number is asked for, no command reads the list.
                let looks = matches!(value, Value::Array(_));
                self.reserved(block, *numbers)? && (others == *told || !looks && !told)
            }
            (Answer::Busy { ttl, foreign }, Answered::Acquired(AcquireResponse::Busy { remaining, ours, listed })) => {
                let waits = matches!(asked, Asked::Acquire { heard: true, .. });
                remaining.is_some_and(|left| in_ticks(left) == u128::from(ttl))
                    && foreign != *ours
                    && *listed == (waits && !foreign)
            }
            (Answer::Free, Answered::Acquired(AcquireResponse::Free { .. }))
            // An extension is not told whether others wait.
            | (Answer::Kept { .. }, Answered::Extended(Extended::Kept))
            | (Answer::Lost, Answered::Extended(Extended::Gone))
            | (Answer::Released, Answered::Released(true))
            | (Answer::NotHeld, Answered::Released(false)) => true,
            _ => false,
        };
        if agrees { Ok(()) } else { Err(told()) }
    }

    /// Takes note of numbers. Each block is above all before, and as long as the model's.
    fn reserved(&mut self, block: lock_model::Block, mut numbers: Numbers) -> Result<bool, String> {
        let real: Vec<_> =
            std::iter::from_fn(|| numbers.take()).map(|number| number.as_i64()).collect();
        if real.first().is_none_or(|&first| first <= self.last_number) {
            return Err(format!("{real:?} were reserved after {}", self.last_number));
        }
        self.last_number = *real.last().unwrap_or(&self.last_number);
        if self.records.fence != Some(self.last_number) {
            return Err(format!("{real:?} were reserved; the fence is {:?}", self.records.fence));
        }
        let scale = if block.left() > 1 { self.scale } else { 1 };
        let as_many = real.len() == usize::from(block.left() * scale);
        self.numbers.extend((block.low..=block.high).zip(real));
        Ok(as_many)
    }

    /// The real one for a number of the model's.
    pub(crate) fn number(&self, number: u16) -> Option<i64> {
        self.numbers.get(&number).copied()
    }

    /// Whether the pushes that came are those that the model's server has published. Managers that
    /// do not listen any more have got some all the same.
    pub(crate) fn check_pushes(
        &self,
        pushes: &[Vec<Push>],
        served: &ServedView,
        after: &View,
        tokens: &Tokens,
    ) -> Result<(), String> {
        for (manager, real) in (0..).zip(pushes) {
            if after.managers[usize::from(manager)].inbox != lock_model::Inbox::Live {
                continue;
            }
            let of = |push: &&ModelPush| push.token().manager == manager;
            let expected: Vec<_> = served.published.iter().filter(of).collect();
            let agrees = expected.len() == real.len()
                && expected.iter().zip(real).all(|(push, real)| self.is_same(**push, real, tokens));
            if !agrees {
                return Err(format!("{real:?} came instead of {expected:?}"));
            }
        }
        Ok(())
    }

    pub(crate) fn is_same(&self, push: ModelPush, real: &Push, tokens: &Tokens) -> bool {
        let key = self.key.clone();
        let Some(token) = tokens.get(&push.token()).map(OwnerToken::to_string) else {
            return false;
        };
        *real
            == match push {
                ModelPush::Grant(_) => Push::Grant { key, token },
                ModelPush::Demand(_) => Push::Demand { key, token },
                ModelPush::Yielded(_) => Push::Yielded { key, token },
            }
    }

    /// Whether the records are the model's.
    pub(crate) fn check_records(&self, view: &View, tokens: &Tokens) -> Result<(), String> {
        let text = |token: Token| match tokens.get(&token) {
            _ if token == Token::FOREIGN => FOREIGN.to_owned(),
            Some(token) => token.to_string(),
            None => "a token without an owner".to_owned(),
        };
        let milliseconds = |ticks: u8| i64::from(ticks) * TICK_MILLISECONDS;
        let lock = view.lock.map(|lock| (text(lock.token), milliseconds(lock.ttl)));
        let waiting: Vec<_> = view.waiting.iter().map(|&token| text(token)).collect();
        let records = &self.records;
        if records.lock != lock
            || records.waiting != waiting
            || records.waiting_left != milliseconds(view.waiting_ttl)
            || records.fence.is_some() != view.fence.is_some()
        {
            return Err(format!(
                "the records are {records:?}; the model has {lock:?} and {waiting:?} for {} ticks, \
                 and the fence {:?}",
                view.waiting_ttl, view.fence
            ));
        }
        Ok(())
    }

    /// The token holds the lock or waits for it.
    pub(crate) fn knows(&self, token: &OwnerToken) -> bool {
        let token = token.to_string();
        self.records.lock.as_ref().is_some_and(|(holder, _)| *holder == token)
            || self.records.waiting.contains(&token)
    }
}

impl Asked {
    /// Reads the answer.
    pub(crate) fn read(&self, value: &Value, sent_at: Instant) -> Option<Answered> {
        match self {
            Self::Acquire { .. } => read_acquired(value, sent_at).map(Answered::Acquired),
            Self::Extension(_) => read_extended(value, 1)?.first().copied().map(Answered::Extended),
            Self::Release(_) => read_released(value).map(Answered::Released),
        }
    }
}

impl Subscriber {
    /// What came so far is lost.
    fn forget_pushes(&mut self) {
        redis::cmd("PING").exec(&mut self.connection).expect("the connection stands");
        for _ in self.received.try_iter() {}
    }
}

fn in_ticks(left: Duration) -> u128 {
    left.as_nanos().div_ceil(TICK.as_nanos())
}
