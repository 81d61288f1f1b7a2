//! Locks on a Redis server.

mod acquire;
mod backoff;
mod call;
mod config;
mod connections;
mod failure;
mod greeting;
mod inbox;
#[cfg(all(feature = "serde", feature = "single-flight"))]
mod record;
#[cfg(test)]
pub(crate) mod replay;
mod script;
mod stall;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls;
mod window;

use std::{
    fmt,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use redis::{ErrorKind, RedisError, ServerErrorKind, Value};
use tokio::runtime::Handle;

#[cfg(not(feature = "tls"))]
pub(crate) use self::config::TlsConfig;
#[cfg(feature = "tls")]
pub use self::tls::TlsConfig;
use self::{
    call::{Call, read_extended, read_released, tells_of_refusal},
    connections::{Connection, Connections, settle},
    failure::{Failure, is_unknown_command},
    inbox::Mailbox,
    script::Scripts,
    window::{Lane, Room},
};
use super::Store;
use crate::{
    clock::Instant,
    driver::Driver,
    error::{BackendError, BackendErrorKind},
    key::LockKey,
    log,
    owner::TokenSource,
    protocol::messages::{Extended, Extension, Inbox, ReleaseOutcome, ReleaseRequest},
};

/// The least pause between two requests for a connection.
const RECONNECT_PAUSE: Duration = Duration::from_millis(5);

/// The pause between two tries of a release that failed.
const RELEASE_PAUSE: Duration = Duration::from_millis(100);
/// It doubles up to this: a lease may last for a day, and the server be gone for as long.
const LONGEST_RELEASE_PAUSE: Duration = Duration::from_secs(4);

/// A connection over which nothing was acknowledged for so many attempts is ended by the kernel;
/// what the other side did acknowledge, it carries out in order or not at all. So no caller
/// waits for an answer any longer than this.
const ATTEMPTS_IN_FLIGHT: u32 = 10;

/// Keeps locks on one Redis server. Made by [`LockManager::connect`](crate::LockManager::connect).
#[derive(Clone)]
pub(crate) struct RedisStore {
    inner: Arc<RedisCore>,
}

struct RedisCore {
    connections: Arc<Connections>,
    scripts: Scripts,
    driver: Arc<Driver>,
    /// The server has no EVALSHA, as where it was renamed: scripts are sent in full.
    hashless: AtomicBool,
    /// The longest time that one request may take.
    attempt: Duration,
    probe: stall::Probe,
}

impl Drop for RedisCore {
    fn drop(&mut self) {
        self.connections.end();
    }
}

impl RedisStore {
    pub(crate) fn new(
        url: &str,
        tls: Option<&TlsConfig>,
        driver: Arc<Driver>,
        tokens: Arc<TokenSource>,
        attempt: Duration,
    ) -> Result<(Self, Inbox), BackendError> {
        let parsed = config::parse(url, tls, attempt)?;
        let (mailbox, inbox) = Mailbox::new(tokens);
        let connections = Arc::new(Connections::new(parsed, Arc::clone(&driver), mailbox, attempt));
        let inner = RedisCore {
            connections,
            scripts: Scripts::new(),
            driver,
            hashless: AtomicBool::new(false),
            attempt,
            probe: stall::Probe::default(),
        };
        Ok((Self { inner: Arc::new(inner) }, inbox))
    }

    /// The server's address, without a password.
    pub(crate) fn server(&self) -> &str {
        self.inner.connections.server()
    }

    /// The number of open connections.
    pub(crate) fn connections(&self) -> usize {
        self.inner.connections.len()
    }

    /// Sees that the server can be reached and lets the user in. A proxy that answers in its place has
    /// to run scripts over several keys.
    pub(crate) async fn check(&self, give_up: Instant) -> Result<(), BackendError> {
        let connection = self.connection(give_up).await?;
        if !self.inner.connections.fell_back() {
            return Ok(());
        }
        let mut script = redis::cmd("EVAL");
        script.arg("return 1").arg(2).arg("{cache-lock}:1").arg("{cache-lock}:2");
        let error = match self.inner.driver.within(give_up, connection.send(&script)).await {
            Some(Err(error)) => Failure::from(error),
            Some(Ok(_)) => return Ok(()),
            None => return Err(self.overdue(&connection).into_error()),
        };
        let said = match &error {
            // Of other keys than these nothing is said.
            Failure::Refused(error) if error.kind() != BackendErrorKind::Server => return Ok(()),
            Failure::Aborted(_) => return Ok(()),
            Failure::Refused(error) | Failure::Unknown(error) => error.to_string(),
            Failure::Closed(_) | Failure::Overdue(_) => "the connection was closed".to_owned(),
        };
        settle(&self.inner.connections, &connection, &Err(error), self.inner.attempt);
        let message = format!(
            "what answers there runs no scripts over several keys, as locks need ({said}); connect \
             to the server itself instead of the proxy before it"
        );
        Err(BackendError::new(BackendErrorKind::Configuration, message))
    }

    /// Has the driver's connection opened. Openings have pauses of their own between them.
    pub(crate) async fn reconnect(&self, until: Instant) {
        while Instant::now() < until && self.connection_of(None, until).await.is_err() {
            self.inner.driver.sleep_until(Instant::now() + RECONNECT_PAUSE).await;
        }
    }

    /// Waits until a connection was lost, or opened after that.
    pub(crate) async fn reconnected(&self) {
        self.inner.connections.replaced().await;
    }

    /// Makes ready for pushes, if that is not done yet.
    pub(crate) fn attend(&self) {
        self.inner.connections.attend();
    }

    /// Whether pushes arrive, as far as is known.
    pub(crate) fn tells(&self) -> bool {
        !self.inner.connections.are_deaf()
    }

    /// The connection for a runtime or, without one, of the driver.
    async fn connection_of(
        &self,
        runtime: Option<&Handle>,
        give_up: Instant,
    ) -> Result<Arc<Connection>, BackendError> {
        let RedisCore { connections, driver, .. } = &*self.inner;
        let Some(runtime) = runtime.or(driver.handle()) else {
            let message = "the lock manager's thread has ended";
            return Err(BackendError::new(BackendErrorKind::Unreachable, message));
        };
        if let Some(connection) = connections.current(runtime) {
            return Ok(connection);
        }
        // Boxed, since it is rare.
        let opening = Box::pin(connections.of_runtime(runtime));
        driver.within(give_up, opening).await.unwrap_or_else(|| Err(connections.not_accepted()))
    }

    /// The connection for the caller's runtime.
    async fn connection(&self, give_up: Instant) -> Result<Arc<Connection>, BackendError> {
        self.connection_of(Handle::try_current().ok().as_ref(), give_up).await
    }

    /// Runs a script over a connection, however long that takes.
    async fn send_over(
        &self,
        connection: &Arc<Connection>,
        call: &Call<'_>,
    ) -> Result<Value, Failure> {
        let hashless = &self.inner.hashless;
        let mut in_full = if hashless.load(Ordering::Relaxed) { call.in_full() } else { None };
        let answer = loop {
            // One place that waits, or the future would have the room of several.
            let answer = connection.send(in_full.as_ref().unwrap_or(call.command())).await;
            match &answer {
                Err(error) if in_full.is_none() && names_no_script(error) => {
                    in_full = call.in_full();
                    if in_full.is_none() {
                        break answer;
                    }
                    if is_unknown_command(error) {
                        hashless.store(true, Ordering::Relaxed);
                    }
                }
                _ => break answer,
            }
        };
        let result = answer.map_err(Failure::from);
        settle(&self.inner.connections, connection, &result, self.inner.attempt);
        result
    }

    /// Runs a script over a connection, until `give_up`.
    async fn run_over(
        &self,
        connection: &Arc<Connection>,
        call: &Call<'_>,
        give_up: Instant,
    ) -> Result<Value, Failure> {
        let sending = pin!(self.send_over(connection, call));
        match self.inner.driver.within(give_up, sending).await {
            Some(result) => result,
            None => Err(self.overdue(connection)),
        }
    }

    /// Takes note of an answer that says that the user may not hand locks on.
    fn note_refusal(&self, answer: &Value) {
        if tells_of_refusal(answer) {
            self.inner.connections.note_refusal();
        }
    }

    /// Takes note of an answer that did not come in time.
    fn overdue(&self, connection: &Arc<Connection>) -> Failure {
        let result = Err(Failure::overdue());
        settle(&self.inner.connections, connection, &result, self.inner.attempt);
        Failure::overdue()
    }

    /// Sends a request that does no harm if it is carried out twice, when its connection has room for
    /// it. A connection that turns out to be closed is replaced once: the server may have been
    /// restarted since it was last used. One that leads to a replica is replaced until `give_up`. It
    /// ends by `give_up`, and an attempt after it was sent.
    async fn run(
        &self,
        lane: Lane,
        give_up: Instant,
        call: &Call<'_>,
    ) -> Result<Ran, BackendError> {
        let mut repeated = false;
        let mut to_replica = None;
        loop {
            let connection = self.connection_off_replica(give_up, &to_replica).await?;
            let (permit, end) = match connection.window.enter(lane) {
                Room::Now(permit) => (permit, give_up.min(self.attempt_end())),
                Room::Full => {
                    let turn =
                        self.inner.driver.within(give_up, connection.window.turn(lane)).await;
                    match turn.ok_or_else(BackendError::overloaded)? {
                        Some(permit) => (permit, self.attempt_end()),
                        None => continue,
                    }
                }
                Room::Closed => continue,
            };
            // Boxed while it is in flight, or the futures of all callers would have room for it.
            let answer = Box::pin(self.run_over(&connection, call, end)).await;
            if is_answer(&answer) {
                permit.answered();
            }
            match answer {
                Ok(value) => return Ok(Ran { value, repeated }),
                Err(Failure::Closed(_) | Failure::Unknown(_)) if !repeated => repeated = true,
                Err(failure) => to_replica = Some(failure.of_replica(give_up)?),
            }
        }
    }

    /// The end of an attempt that begins now.
    fn attempt_end(&self) -> Instant {
        Instant::now() + self.inner.attempt
    }

    /// The connection for the caller's runtime. After an answer of a replica another one is looked
    /// for, with the pauses between two openings, until `give_up`; that answer is the error then.
    async fn connection_off_replica(
        &self,
        give_up: Instant,
        to_replica: &Option<BackendError>,
    ) -> Result<Arc<Connection>, BackendError> {
        loop {
            match (self.connection(give_up).await, to_replica) {
                (Err(error), Some(_)) if error.is_transient() && Instant::now() < give_up => {}
                (Err(error), Some(answer)) if error.is_transient() => return Err(answer.clone()),
                (connection, _) => return connection,
            }
        }
    }

    pub(crate) async fn extend(
        &self,
        leases: &[Extension],
        overdue: Instant,
        on_overdue: impl FnOnce(&BackendError),
        give_up: Instant,
    ) -> Result<(Instant, Vec<Extended>), BackendError> {
        let call = Call::extend(&self.inner.scripts, leases);
        let mut replaced = false;
        let mut to_replica = None;
        let (sent_at, value) = loop {
            let connection = self.connection_off_replica(overdue, &to_replica).await?;
            let sent_at = Instant::now();
            let mut sending = pin!(self.send_over(&connection, &call));
            let answer = match self.inner.driver.within(overdue, sending.as_mut()).await {
                Some(answer) => answer,
                None => {
                    let failure = self.overdue(&connection).into_error();
                    on_overdue(&failure);
                    let late = self.inner.driver.within(give_up, sending).await;
                    let value = late.ok_or(failure)?.map_err(Failure::into_error)?;
                    break (sent_at, value);
                }
            };
            match answer {
                Ok(value) => break (sent_at, value),
                Err(Failure::Closed(_) | Failure::Unknown(_)) if !replaced => replaced = true,
                Err(failure) => to_replica = Some(failure.of_replica(overdue)?),
            }
        };
        let kept = read_extended(&value, leases.len());
        kept.map(|kept| (sent_at, kept)).ok_or_else(|| unexpected(&value))
    }

    pub(crate) async fn release(
        &self,
        key: &LockKey,
        ended: &ReleaseRequest,
        give_up: Instant,
    ) -> Result<ReleaseOutcome, BackendError> {
        let call = Call::release(&self.inner.scripts, key, ended, self.inner.connections.rights());
        let Ran { value, repeated } = self.run(Lane::Releases, give_up, &call).await?;
        self.note_refusal(&value);
        match read_released(&value) {
            Some(true) => Ok(ReleaseOutcome::Released),
            // The first request, whose answer was lost, may have released it.
            Some(false) if repeated => Ok(ReleaseOutcome::Unknown),
            Some(false) => Ok(ReleaseOutcome::AlreadyExpired),
            None => Err(unexpected(&value)),
        }
    }

    /// Releases, and tries again until there is an answer or the record has run out. For the driver.
    pub(crate) async fn release_at_last(&self, key: &LockKey, ended: &ReleaseRequest) {
        let (mut failed, mut pause) = (false, RELEASE_PAUSE);
        loop {
            // Each try that was sent has the time of an attempt.
            match self
                .release(key, ended, ended.lasts.max(Instant::now() + self.inner.attempt))
                .await
            {
                Ok(released) => {
                    log::debug!(%key, ?released, "lock released in the background");
                    return;
                }
                Err(error) if Instant::now() < ended.lasts => {
                    if !failed {
                        log::warn!(%key, %error, "lock not released yet; trying again");
                    }
                    failed = true;
                }
                Err(error) => {
                    log::warn!(%key, %error, "lock not released; its lease has run out");
                    return;
                }
            }
            self.pause(&mut pause, ended.lasts).await;
        }
    }

    /// Waits before another try of a release, for no longer than until a connection is opened.
    async fn pause(&self, pause: &mut Duration, until: Instant) {
        let RedisCore { driver, connections, .. } = &*self.inner;
        let now = Instant::now();
        let end = (now + *pause).min(until);
        *pause = (*pause * 2).min(LONGEST_RELEASE_PAUSE);
        // A server that accepts connections and carries out nothing is not asked without a pause.
        driver.sleep_until((now + RELEASE_PAUSE).min(end)).await;
        driver.within(end, connections.opened()).await;
    }
}

impl Failure {
    /// The answer of a replica, if there is time to find its primary.
    fn of_replica(self, give_up: Instant) -> Result<BackendError, BackendError> {
        let of_replica = matches!(
            &self,
            Self::Refused(error) | Self::Aborted(error)
                if error.kind() == BackendErrorKind::ReadOnly
        );
        let error = self.into_error();
        if of_replica && Instant::now() < give_up { Ok(error) } else { Err(error) }
    }
}

/// The server does not know the script by its hash, or no call by a hash.
fn names_no_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) || is_unknown_command(error)
}

/// Whether something has answered, be it the server or not.
fn is_answer(answer: &Result<Value, Failure>) -> bool {
    !matches!(answer, Err(Failure::Closed(_) | Failure::Overdue(_)))
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
