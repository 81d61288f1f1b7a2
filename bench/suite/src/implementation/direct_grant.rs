//! The floor for the hand-off between processes: a waiting list in Redis, and a grant that the
//! releasing script pushes to the next one's channel. It has the token, the fencing number, and a
//! raise that is awaited before the section starts; what makes a lock live when messages or
//! processes are lost is not there. Without the raise it is unsafe: a grant may have been on its way
//! for any time.

use std::{
    collections::HashMap,
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use redis::{PushInfo, PushKind, Script, Value, aio::MultiplexedConnection};
use tokio::sync::oneshot;

use super::{EXPIRE, TIMEOUT, patient, resp3_client};
use crate::{
    Error, clock,
    section::{Body, Interval},
};

/// The number of the grant, or 0: in line.
static ACQUIRE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local holder = redis.call('GET', KEYS[1])
         if not holder then
             redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
         elseif holder == ARGV[1] then
             redis.call('PEXPIRE', KEYS[1], ARGV[2])
         else
             redis.call('RPUSH', KEYS[2], ARGV[1])
             return 0
         end
         return redis.call('INCR', KEYS[3])",
    )
});

/// A token is `<channel>|<number>`.
static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
         local next = redis.call('LPOP', KEYS[2])
         if next then
             redis.call('SET', KEYS[1], next, 'PX', ARGV[2])
             redis.call('PUBLISH', string.match(next, '^(.*)|'), next)
         else
             redis.call('DEL', KEYS[1])
         end
         return 1",
    )
});

const CLAIM_MS: u64 = 500;

type Waiting = Mutex<HashMap<String, oneshot::Sender<()>>>;

#[derive(Clone)]
pub(crate) struct DirectGrant {
    connection: MultiplexedConnection,
    inbox: Arc<str>,
    waiting: Arc<Waiting>,
    tokens: Arc<AtomicU64>,
    raise: bool,
}

impl DirectGrant {
    pub(super) async fn connect(url: &str, raise: bool) -> Result<Self, Error> {
        let inbox = format!("inbox:{}:{}", std::process::id(), clock::now());
        let waiting = Arc::new(Waiting::default());
        let receiver = Arc::clone(&waiting);
        // Called by the connection itself, so that no other task stands between.
        let config = patient().set_push_sender(move |push: PushInfo| {
            grant(&receiver, &push);
            Ok::<(), redis::aio::SendError>(())
        });
        let client = resp3_client(url)?;
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        connection.subscribe(&inbox).await?;
        Ok(Self { connection, inbox: inbox.into(), waiting, tokens: Arc::default(), raise })
    }

    pub(super) async fn section(&self, name: &str, body: Body) -> Result<Interval, Error> {
        let number = self.tokens.fetch_add(1, Ordering::Relaxed);
        let token = format!("{}|{number}", self.inbox);
        let (granted, grant) = oneshot::channel();
        // Before the request: the grant may be faster than the reply.
        self.waiting().insert(token.clone(), granted);
        if self.acquire(name, &token).await? == 0 {
            tokio::time::timeout(TIMEOUT, grant).await??;
            if self.raise && self.acquire(name, &token).await? == 0 {
                return Err("the grant had run out".into());
            }
        } else {
            self.waiting().remove(&token);
        }
        let interval = body.run().await;
        let mut connection = self.connection.clone();
        let released: i64 = RELEASE
            .key(name)
            .key(format!("{name}:waiting"))
            .arg(token)
            .arg(CLAIM_MS)
            .invoke_async(&mut connection)
            .await?;
        if released == 0 { Err("the lease was lost".into()) } else { Ok(interval) }
    }

    async fn acquire(&self, name: &str, token: &str) -> Result<i64, Error> {
        let mut connection = self.connection.clone();
        Ok(ACQUIRE
            .key(name)
            .key(format!("{name}:waiting"))
            .key(format!("{name}:fence"))
            .arg(token)
            .arg(EXPIRE.as_millis() as u64)
            .invoke_async(&mut connection)
            .await?)
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<()>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn grant(waiting: &Waiting, push: &PushInfo) {
    if push.kind != PushKind::Message {
        return;
    }
    let Some(Value::BulkString(token)) = push.data.get(1) else { return };
    let token = String::from_utf8_lossy(token);
    let granted = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&*token);
    if let Some(granted) = granted {
        let _ = granted.send(());
    }
}
