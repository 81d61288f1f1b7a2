//! Locks on a Redis server.

mod ask;
mod config;
mod failure;
mod inbox;
mod link;
mod script;
#[cfg(feature = "tls")]
mod tls;

use std::{fmt, pin::pin, sync::Arc, time::Duration};

use redis::{ErrorKind, ServerErrorKind, Value};
use tokio::runtime::Handle;

#[cfg(not(feature = "tls"))]
pub(crate) use self::config::TlsConfig;
#[cfg(feature = "tls")]
pub use self::tls::TlsConfig;
use self::{
    failure::Failure,
    inbox::Mailbox,
    link::{Link, Links, not_accepted, settle},
    script::{LuaScript, Scripts},
};
use super::{Extended, Extension, Inbox, Released, Store};
use crate::{
    clock::Moment,
    driver::Driver,
    error::{BackendError, BackendErrorKind},
    key::LockKey,
    owner::{OwnerToken, Owners},
};

/// How long a grant lasts that is not claimed: its manager may have been stopped.
const CLAIM: Duration = Duration::from_millis(500);

/// The pause between two tries of a release that failed.
const RELEASE_PAUSE: Duration = Duration::from_millis(100);

/// A connection over which nothing was acknowledged for so many attempts is ended by the kernel;
/// what the other side did acknowledge, it carries out in order or not at all. So nobody needs to
/// wait for an answer any longer than this.
const ATTEMPTS_IN_FLIGHT: u32 = 10;

/// Keeps locks on one Redis server. Made by [`LockManager::connect`](crate::LockManager::connect).
#[derive(Clone)]
pub(crate) struct RedisStore {
    inner: Arc<Inner>,
}

struct Inner {
    links: Arc<Links>,
    scripts: Scripts,
    driver: Arc<Driver>,
    /// The longest time that one request may take.
    attempt: Duration,
}

impl RedisStore {
    pub(crate) fn new(
        url: &str,
        tls: Option<&TlsConfig>,
        driver: Arc<Driver>,
        owners: &Owners,
        attempt: Duration,
    ) -> Result<(Self, Inbox), BackendError> {
        let parsed = config::parse(url, tls, attempt)?;
        let (mailbox, inbox) = Mailbox::new(owners.channel());
        let links = Arc::new(Links::new(parsed, Arc::clone(&driver), mailbox));
        let inner = Inner { links, scripts: Scripts::new(), driver, attempt };
        Ok((Self { inner: Arc::new(inner) }, inbox))
    }

    /// The server's address, without a password.
    pub(crate) fn server(&self) -> &str {
        self.inner.links.server()
    }

    /// The number of open connections.
    pub(crate) fn connections(&self) -> usize {
        self.inner.links.len()
    }

    /// Sees that the server can be reached and lets the user in.
    pub(crate) async fn check(&self, give_up: Moment) -> Result<(), BackendError> {
        self.link(give_up).await.map(drop)
    }

    /// Makes ready for pushes, if that is not done yet.
    pub(crate) fn attend(&self) {
        self.inner.links.attend();
    }

    /// The connection for a runtime or, without one, of the driver.
    async fn link_of(&self, runtime: Option<&Handle>) -> Result<Arc<Link>, BackendError> {
        let Inner { links, driver, .. } = &*self.inner;
        match runtime.or(driver.handle()) {
            Some(runtime) => links.of_runtime(runtime).await,
            None => {
                let message = "the lock manager's thread has ended";
                Err(BackendError::new(BackendErrorKind::Unreachable, message))
            }
        }
    }

    /// The connection for the caller's runtime.
    async fn link(&self, give_up: Moment) -> Result<Arc<Link>, BackendError> {
        let runtime = Handle::try_current().ok();
        let opening = self.link_of(runtime.as_ref());
        match self.inner.driver.within(give_up, opening).await {
            Some(link) => link,
            None => Err(not_accepted()),
        }
    }

    /// Runs a script over a connection, however long that takes.
    async fn send_over(
        &self,
        link: &Arc<Link>,
        script: &LuaScript,
        keys: &[&str],
        arguments: &[&str],
    ) -> Result<Value, Failure> {
        let answer = match link.send(&script.by_hash(keys, arguments)).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                link.send(&script.in_full(keys, arguments)).await
            }
            answer => answer,
        };
        let result = answer.map_err(Failure::from);
        settle(&self.inner.links, link, &result, self.inner.attempt);
        result
    }

    /// Runs a script over a connection, until `give_up`.
    async fn run_over(
        &self,
        link: &Arc<Link>,
        script: &LuaScript,
        keys: &[&str],
        arguments: &[&str],
        give_up: Moment,
    ) -> Result<Value, Failure> {
        let call = self.send_over(link, script, keys, arguments);
        match self.inner.driver.within(give_up, call).await {
            Some(result) => result,
            None => Err(self.overdue(link)),
        }
    }

    /// Takes note of an answer that did not come in time.
    fn overdue(&self, link: &Arc<Link>) -> Failure {
        let result = Err(Failure::overdue());
        settle(&self.inner.links, link, &result, self.inner.attempt);
        Failure::overdue()
    }

    /// Runs a script that does no harm if it runs twice. A connection that turns out to be closed
    /// is replaced once: the server may have been restarted since it was last used.
    async fn run(
        &self,
        script: &LuaScript,
        keys: &[&str],
        arguments: &[&str],
        give_up: Moment,
    ) -> Result<Ran, BackendError> {
        let mut repeated = false;
        loop {
            let link = self.link(give_up).await?;
            match self.run_over(&link, script, keys, arguments, give_up).await {
                Ok(value) => return Ok(Ran { value, repeated }),
                Err(Failure::Closed(_)) if !repeated => repeated = true,
                Err(failure) => return Err(failure.into_error()),
            }
        }
    }

    pub(crate) async fn extend(
        &self,
        leases: &[Extension],
        overdue: Moment,
        on_overdue: impl FnOnce(&BackendError),
        give_up: Moment,
    ) -> Result<(Moment, Vec<Extended>), BackendError> {
        let keys: Vec<_> = leases.iter().map(|lease| lease.key.as_str()).collect();
        let arguments: Vec<_> = leases
            .iter()
            .flat_map(|lease| [lease.token.to_string(), milliseconds(lease.expire)])
            .collect();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let script = &self.inner.scripts.extend;
        let mut replaced = false;
        let (sent_at, value) = loop {
            let link = self.link(overdue).await?;
            let sent_at = Moment::now();
            let mut call = pin!(self.send_over(&link, script, &keys, &arguments));
            let answer = match self.inner.driver.within(overdue, call.as_mut()).await {
                Some(answer) => answer,
                None => {
                    let failure = self.overdue(&link).into_error();
                    on_overdue(&failure);
                    let late = self.inner.driver.within(give_up, call).await;
                    let value = late.ok_or(failure)?.map_err(Failure::into_error)?;
                    break (sent_at, value);
                }
            };
            match answer {
                Ok(value) => break (sent_at, value),
                Err(Failure::Closed(_)) if !replaced => replaced = true,
                Err(failure) => return Err(failure.into_error()),
            }
        };
        let kept = match &value {
            Value::Array(kept) if kept.len() == leases.len() => kept.iter().map(extended).collect(),
            _ => None,
        };
        kept.map(|kept| (sent_at, kept)).ok_or_else(|| unexpected(&value))
    }

    pub(crate) async fn release(
        &self,
        key: &LockKey,
        token: &OwnerToken,
        expire: Duration,
        give_up: Moment,
    ) -> Result<Released, BackendError> {
        let (waiting, token) = (key.waiting_key(), token.to_string());
        let script = &self.inner.scripts.release;
        let keys = [key.as_str(), &waiting];
        let arguments = [&*token, &claim(expire)];
        let Ran { value, repeated } = self.run(script, &keys, &arguments, give_up).await?;
        match value {
            Value::Int(1) => Ok(Released::Released),
            // The first request, whose answer was lost, may have released it.
            Value::Int(0) if repeated => Ok(Released::Unknown),
            Value::Int(0) => Ok(Released::AlreadyExpired),
            other => Err(unexpected(&other)),
        }
    }

    /// Releases, and tries again until there is an answer or `until` has passed. For the driver.
    pub(crate) async fn release_until(
        &self,
        key: &LockKey,
        token: &OwnerToken,
        expire: Duration,
        until: Moment,
    ) {
        let Inner { driver, attempt, .. } = &*self.inner;
        let mut failed = false;
        loop {
            let now = Moment::now();
            match self.release(key, token, expire, now.after(*attempt)).await {
                Ok(released) => {
                    tracing::debug!(%key, ?released, "lock released in the background");
                    return;
                }
                Err(error) if Moment::now() < until => {
                    if !failed {
                        tracing::warn!(%key, %error, "lock not released yet; trying again");
                    }
                    failed = true;
                }
                Err(error) => {
                    tracing::warn!(%key, %error, "lock not released; its lease has run out");
                    return;
                }
            }
            driver.sleep_until(Moment::now().after(RELEASE_PAUSE)).await;
        }
    }
}

/// The answer to a script.
struct Ran {
    value: Value,
    /// An earlier request was not answered, and may have been carried out.
    repeated: bool,
}

impl From<RedisStore> for Store {
    fn from(store: RedisStore) -> Self {
        Self::Redis(store)
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("server", &self.server()).finish_non_exhaustive()
    }
}

fn extended(value: &Value) -> Option<Extended> {
    match value {
        Value::Int(1) => Some(Extended::Kept),
        Value::Int(0) => Some(Extended::Gone),
        _ => None,
    }
}

/// Rounds up: a lease is never shorter on the server than its holder believes.
fn milliseconds(time: Duration) -> String {
    time.as_nanos().div_ceil(1_000_000).to_string()
}

/// How long the claim of a grant lasts that the release of such a lease makes.
fn claim(expire: Duration) -> String {
    milliseconds(expire.min(CLAIM))
}

fn unexpected(value: &Value) -> BackendError {
    BackendError::new(
        BackendErrorKind::Server,
        format!("the server gave an answer that the script does not give: {value:?}"),
    )
}
