//! Locks on a Redis server.

mod ask;
mod call;
mod config;
mod failure;
mod inbox;
mod link;
mod record;
#[cfg(test)]
pub(crate) mod replay;
mod script;
#[cfg(feature = "tls")]
mod tls;

use std::{
    fmt,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use redis::{ErrorKind, ServerErrorKind, Value};
use tokio::runtime::Handle;

#[cfg(not(feature = "tls"))]
pub(crate) use self::config::TlsConfig;
#[cfg(feature = "tls")]
pub use self::tls::TlsConfig;
use self::{
    call::{Call, read_extended, read_released, tells_of_refusal},
    failure::{Failure, is_unknown_command},
    inbox::Mailbox,
    link::{Link, Links, not_accepted, settle},
    script::Scripts,
};
use super::{Ended, Extended, Extension, Inbox, Released, Store};
use crate::{
    clock::Moment,
    driver::Driver,
    error::{BackendError, BackendErrorKind},
    key::LockKey,
    owner::Owners,
};

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
    /// The server has no EVALSHA, as where it was renamed: scripts are sent in full.
    hashless: AtomicBool,
    /// The longest time that one request may take.
    attempt: Duration,
}

impl RedisStore {
    pub(crate) fn new(
        url: &str,
        tls: Option<&TlsConfig>,
        driver: Arc<Driver>,
        owners: Arc<Owners>,
        attempt: Duration,
    ) -> Result<(Self, Inbox), BackendError> {
        let parsed = config::parse(url, tls, attempt)?;
        let (mailbox, inbox) = Mailbox::new(owners);
        let links = Arc::new(Links::new(parsed, Arc::clone(&driver), mailbox));
        let inner = Inner {
            links,
            scripts: Scripts::new(),
            driver,
            hashless: AtomicBool::new(false),
            attempt,
        };
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

    /// Whether pushes arrive, as far as is known.
    pub(crate) fn tells(&self) -> bool {
        !self.inner.links.are_deaf()
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
    async fn send_over(&self, link: &Arc<Link>, call: &Call<'_>) -> Result<Value, Failure> {
        let hashless = &self.inner.hashless;
        let by_hash = match hashless.load(Ordering::Relaxed) {
            true => None,
            false => Some(link.send(call.by_hash()).await),
        };
        let answer = match by_hash {
            None => link.send(&call.in_full()).await,
            Some(Err(error)) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                link.send(&call.in_full()).await
            }
            Some(Err(error)) if is_unknown_command(&error) => {
                hashless.store(true, Ordering::Relaxed);
                link.send(&call.in_full()).await
            }
            Some(answer) => answer,
        };
        let result = answer.map_err(Failure::from);
        settle(&self.inner.links, link, &result, self.inner.attempt);
        result
    }

    /// Runs a script over a connection, until `give_up`.
    async fn run_over(
        &self,
        link: &Arc<Link>,
        call: &Call<'_>,
        give_up: Moment,
    ) -> Result<Value, Failure> {
        let sending = self.send_over(link, call);
        match self.inner.driver.within(give_up, sending).await {
            Some(result) => result,
            None => Err(self.overdue(link)),
        }
    }

    /// Takes note of an answer that says that the user may not hand locks on.
    fn note_refusal(&self, answer: &Value) {
        if tells_of_refusal(answer) {
            self.inner.links.note_refusal();
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
    async fn run(&self, call: &Call<'_>, give_up: Moment) -> Result<Ran, BackendError> {
        let mut repeated = false;
        loop {
            let link = self.link(give_up).await?;
            match self.run_over(&link, call, give_up).await {
                Ok(value) => return Ok(Ran { value, repeated }),
                Err(Failure::Closed(_) | Failure::Unknown(_)) if !repeated => repeated = true,
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
        let call = Call::extend(&self.inner.scripts, leases);
        let mut replaced = false;
        let (sent_at, value) = loop {
            let link = self.link(overdue).await?;
            let sent_at = Moment::now();
            let mut sending = pin!(self.send_over(&link, &call));
            let answer = match self.inner.driver.within(overdue, sending.as_mut()).await {
                Some(answer) => answer,
                None => {
                    let failure = self.overdue(&link).into_error();
                    on_overdue(&failure);
                    let late = self.inner.driver.within(give_up, sending).await;
                    let value = late.ok_or(failure)?.map_err(Failure::into_error)?;
                    break (sent_at, value);
                }
            };
            match answer {
                Ok(value) => break (sent_at, value),
                Err(Failure::Closed(_) | Failure::Unknown(_)) if !replaced => replaced = true,
                Err(failure) => return Err(failure.into_error()),
            }
        };
        let kept = read_extended(&value, leases.len());
        kept.map(|kept| (sent_at, kept)).ok_or_else(|| unexpected(&value))
    }

    pub(crate) async fn release(
        &self,
        key: &LockKey,
        ended: &Ended,
        give_up: Moment,
    ) -> Result<Released, BackendError> {
        let call = Call::release(&self.inner.scripts, key, ended);
        let Ran { value, repeated } = self.run(&call, give_up).await?;
        self.note_refusal(&value);
        match read_released(&value) {
            Some(true) => Ok(Released::Released),
            // The first request, whose answer was lost, may have released it.
            Some(false) if repeated => Ok(Released::Unknown),
            Some(false) => Ok(Released::AlreadyExpired),
            None => Err(unexpected(&value)),
        }
    }

    /// Releases, and tries again until there is an answer or `until` has passed. For the driver.
    pub(crate) async fn release_until(&self, key: &LockKey, ended: &Ended, until: Moment) {
        let Inner { driver, attempt, .. } = &*self.inner;
        let mut failed = false;
        loop {
            let now = Moment::now();
            match self.release(key, ended, now.after(*attempt)).await {
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

fn unexpected(value: &Value) -> BackendError {
    BackendError::new(
        BackendErrorKind::Unavailable,
        format!("the server gave an answer that the script does not give: {value:?}"),
    )
}
