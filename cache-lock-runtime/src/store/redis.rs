//! Locks on a Redis server.

mod claim;
mod config;
mod failure;
mod link;
mod script;
#[cfg(feature = "tls")]
mod tls;

use std::{fmt, sync::Arc, time::Duration};

use redis::{ErrorKind, ServerErrorKind, Value};

#[cfg(not(feature = "tls"))]
pub(crate) use self::config::TlsConfig;
#[cfg(feature = "tls")]
pub use self::tls::TlsConfig;
use self::{
    claim::RedisClaim,
    failure::Failure,
    link::{Link, Links, not_accepted, settle},
    script::{LuaScript, Scripts},
};
use super::{Claim, Extended, LockStore, Released, Store};
use crate::{
    clock::Moment,
    driver::Driver,
    error::{BackendError, BackendErrorKind},
    key::LockKey,
    owner::OwnerToken,
};

/// How long the last fencing number of an idle key is kept. After that the server's clock alone
/// keeps the numbers rising.
const FENCE_TTL_MS: &str = "86400000";

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
    /// The server's address, without a password.
    server: String,
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
        attempt: Duration,
    ) -> Result<Self, BackendError> {
        let config::Parsed { server, client, client_resp2 } = config::parse(url, tls, attempt)?;
        let links = Arc::new(Links::new(client, client_resp2, Arc::clone(&driver)));
        let scripts = Scripts::new();
        Ok(Self { inner: Arc::new(Inner { server, links, scripts, driver, attempt }) })
    }

    /// The server's address, without a password.
    pub(crate) fn server(&self) -> &str {
        &self.inner.server
    }

    /// The number of open connections.
    pub(crate) fn connections(&self) -> usize {
        self.inner.links.len()
    }

    /// Sees that the server can be reached and lets the user in.
    pub(crate) async fn check(&self, give_up: Moment) -> Result<(), BackendError> {
        self.link(give_up).await.map(drop)
    }

    /// The connection for the caller's runtime.
    async fn link(&self, give_up: Moment) -> Result<Arc<Link>, BackendError> {
        let Inner { links, driver, .. } = &*self.inner;
        let opening = async {
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                return links.of_runtime(&runtime).await;
            }
            let Some(runtime) = driver.handle().cloned() else {
                return Err(unreachable("the lock manager's thread has ended"));
            };
            let (links, on) = (Arc::clone(links), runtime.clone());
            let opened = runtime.spawn(async move { links.of_runtime(&on).await }).await;
            opened.unwrap_or_else(|_| Err(unreachable("the lock manager's thread has ended")))
        };
        match driver.within(give_up, opening).await {
            Some(link) => link,
            None => Err(not_accepted()),
        }
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
        let call = async {
            match link.send(&script.by_hash(keys, arguments)).await {
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                    link.send(&script.in_full(keys, arguments)).await
                }
                answer => answer,
            }
        };
        let result = match self.inner.driver.within(give_up, call).await {
            Some(answer) => answer.map_err(Failure::from),
            None => Err(Failure::overdue()),
        };
        settle(&self.inner.links, link, &result, self.inner.attempt);
        result
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
            let sent_at = Moment::now();
            match self.run_over(&link, script, keys, arguments, give_up).await {
                Ok(value) => return Ok(Ran { value, sent_at, repeated }),
                Err(Failure::Closed(_)) if !repeated => repeated = true,
                Err(failure) => return Err(failure.into_error()),
            }
        }
    }

    /// Releases, and tries again until there is an answer or `until` has passed. For the driver.
    async fn release_until(&self, key: &LockKey, owner: &OwnerToken, until: Moment) {
        let Inner { driver, attempt, .. } = &*self.inner;
        let mut failed = false;
        loop {
            let now = Moment::now();
            match self.release(key, owner, now.after(*attempt)).await {
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
    /// When the request was sent that was answered.
    sent_at: Moment,
    /// An earlier request was not answered, and may have been carried out.
    repeated: bool,
}

impl LockStore for RedisStore {
    fn claim(&self, key: &LockKey, owner: OwnerToken) -> impl Claim {
        RedisClaim::new(self.clone(), key.clone(), owner)
    }

    async fn extend(
        &self,
        key: &LockKey,
        owner: &OwnerToken,
        expire: Duration,
        give_up: Moment,
    ) -> Result<Extended, BackendError> {
        let owner = owner.to_string();
        let script = &self.inner.scripts.extend;
        let arguments = [&*owner, &*milliseconds(expire)];
        let Ran { value, sent_at, .. } =
            self.run(script, &[key.as_str()], &arguments, give_up).await?;
        match value {
            Value::Int(1) => Ok(Extended::Kept { sent_at }),
            Value::Int(0) => Ok(Extended::Gone),
            other => Err(unexpected(&other)),
        }
    }

    async fn release(
        &self,
        key: &LockKey,
        owner: &OwnerToken,
        give_up: Moment,
    ) -> Result<Released, BackendError> {
        let owner = owner.to_string();
        let script = &self.inner.scripts.release;
        let Ran { value, repeated, .. } =
            self.run(script, &[key.as_str()], &[&owner], give_up).await?;
        match value {
            Value::Int(1) => Ok(Released::Released),
            // The first request, whose answer was lost, may have released it.
            Value::Int(0) if repeated => Ok(Released::Unknown),
            Value::Int(0) => Ok(Released::AlreadyExpired),
            other => Err(unexpected(&other)),
        }
    }

    fn release_detached(&self, key: LockKey, owner: OwnerToken, until: Moment) {
        let store = self.clone();
        self.inner.driver.spawn(async move { store.release_until(&key, &owner, until).await });
    }
}

impl From<RedisStore> for Store {
    fn from(store: RedisStore) -> Self {
        Self::Redis(store)
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("server", &self.inner.server).finish_non_exhaustive()
    }
}

/// Rounds up: a lease is never shorter on the server than its holder believes.
fn milliseconds(time: Duration) -> String {
    time.as_nanos().div_ceil(1_000_000).to_string()
}

fn unreachable(message: &str) -> BackendError {
    BackendError::new(BackendErrorKind::Unreachable, message)
}

fn unexpected(value: &Value) -> BackendError {
    BackendError::new(
        BackendErrorKind::Server,
        format!("the server gave an answer that the script does not give: {value:?}"),
    )
}
