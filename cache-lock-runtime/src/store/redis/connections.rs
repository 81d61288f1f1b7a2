//! Connections: one for each runtime that locks are taken from.
//!
//! A connection is served by a task of the runtime that it was opened on, and stands still or ends
//! with it. So each runtime gets its own, when it first asks, and the entry goes when the runtime
//! does. Callers outside of tokio share the driver's.

use std::{
    collections::HashMap,
    convert::Infallible,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, ProtocolVersion, PushInfo, PushKind, aio::MultiplexedConnection,
};
use tokio::{
    runtime::{Handle, Id},
    sync::Notify,
};

pub(super) use self::connection::{Connection, settle};
use self::slot::{OpeningSlot, RuntimeEntry};
use self::unless::{unless_ended, unless_it_panics};
use super::{
    backoff::ReconnectBackoff,
    config::Parsed,
    failure::describe,
    greeting,
    inbox::{Hearing, Mailbox, Rights, is_over},
};
use crate::{
    clock::Instant,
    driver::Driver,
    error::{BackendError, BackendErrorKind},
    mutex::Mutex,
    owner::TokenSource,
};

mod connection;
mod slot;
mod unless;

/// The longest time that opening a connection may take.
const OPENING: Duration = Duration::from_secs(5);

/// The first and the longest pause before a server is asked again for pushes that it did not refuse.
const LISTENING_PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// A server that closes so many connections in a row without an answer is not asked for RESP3.
const CLOSED_TO_HELLO: u32 = 2;

/// After so many tries in vain it is said that there are no pushes yet.
const LISTENING_TRIES: u32 = 5;

/// All connections to one server.
pub(super) struct Connections {
    /// The server's address, without a password.
    server: String,
    client: Client,
    /// For servers and proxies that do not speak RESP3.
    client_resp2: Client,
    /// For those that close a connection on which a command comes that they do not know.
    client_plain: Client,
    resp2: AtomicBool,
    fallen_back: AtomicBool,
    driver: Arc<Driver>,
    mailbox: Arc<Mailbox>,
    slots: Mutex<HashMap<Id, Arc<OpeningSlot>>>,
    /// The longest time that one request may take.
    attempt: Duration,
    backoff: ReconnectBackoff,
    /// The server takes no other commands on a connection that is subscribed.
    apart: AtomicBool,
    /// A connection was lost, or not to be had, and none was opened since.
    broken: AtomicBool,
    /// The same of the driver's connection, over which leases are extended.
    driver_broken: AtomicBool,
    /// A connection was lost, or opened after that.
    replaced: Notify,
    /// A connection was opened.
    opened: Notify,
}

impl Connections {
    pub(super) fn new(
        parsed: Parsed,
        driver: Arc<Driver>,
        mailbox: Mailbox,
        attempt: Duration,
    ) -> Self {
        let Parsed { server, client, client_resp2, client_plain } = parsed;
        let mailbox = Arc::new(mailbox);
        let resp2 =
            client.get_connection_info().redis_settings().protocol() == ProtocolVersion::RESP2;
        let resp2 = AtomicBool::new(resp2);
        Self {
            server,
            client,
            client_resp2,
            client_plain,
            resp2,
            fallen_back: AtomicBool::new(false),
            driver,
            backoff: ReconnectBackoff::new(TokenSource::number()),
            mailbox,
            slots: Mutex::default(),
            attempt,
            apart: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            driver_broken: AtomicBool::new(false),
            replaced: Notify::new(),
            opened: Notify::new(),
        }
    }

    /// The server's address, without a password.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Whether this manager is told of a grant.
    pub(super) fn are_heard(&self) -> bool {
        self.mailbox.is_live()
    }

    /// Whether it is known that this manager is told of nothing.
    pub(super) fn are_deaf(&self) -> bool {
        self.mailbox.is_deaf()
    }

    /// What the user may do.
    pub(super) fn rights(&self) -> Rights {
        self.mailbox.rights()
    }

    /// An answer says that the user may not hand locks on.
    pub(super) fn note_refusal(&self) {
        self.mailbox.note_refusal(&self.server);
    }

    /// Has the driver's connection opened, if it is not open: pushes come over it.
    pub(super) fn attend(self: &Arc<Self>) {
        if !self.are_heard()
            && let Some(runtime) = self.driver.handle()
        {
            drop(self.slot(runtime));
        }
    }

    /// Ready when a connection is opened.
    pub(super) async fn opened(&self) {
        self.opened.notified().await;
    }

    pub(super) fn len(&self) -> usize {
        self.slots.lock().values().filter(|slot| !slot.without_io.load(Ordering::Acquire)).count()
    }

    /// The connection of a runtime. The first caller has it opened, by a task of that runtime: a
    /// caller whose future stays unpolled keeps no other from it.
    ///
    /// # Cancel safety
    /// The connection is opened all the same, for the next caller.
    pub(super) async fn of_runtime(
        self: &Arc<Self>,
        runtime: &Handle,
    ) -> Result<Arc<Connection>, BackendError> {
        let slot = self.slot(runtime);
        let opened = slot.connection().await;
        match self.driver.handle() {
            Some(driver)
                if slot.without_io.load(Ordering::Acquire) && driver.id() != runtime.id() =>
            {
                self.slot(driver).connection().await
            }
            _ => opened,
        }
    }

    fn slot(self: &Arc<Self>, runtime: &Handle) -> Arc<OpeningSlot> {
        let id = runtime.id();
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(&id) {
            return Arc::clone(slot);
        }
        let slot = Arc::new(OpeningSlot::default());
        slots.insert(id, Arc::clone(&slot));
        drop(slots);
        // The task ends with the runtime, and its entry with it.
        let mut entry =
            RuntimeEntry { connections: Arc::downgrade(self), slot: Arc::clone(&slot), id };
        let connections = Arc::clone(self);
        let end = Arc::clone(&slot.end);
        runtime.spawn(async move {
            if unless_ended(&end, connections.backoff.turn(&connections.driver)).await.is_none() {
                return;
            }
            let connection = loop {
                // Not for each attempt of one opening: the first that succeeds is the one that listens.
                if connections.listens(id) {
                    connections.mailbox.prepare();
                }
                let opening = unless_it_panics(connections.open_in_time(id));
                let Some(opened) = unless_ended(&end, opening).await else { return };
                let Some(opened) = opened else {
                    if connections.listens(id) {
                        // Its thread has I/O, so that was another panic.
                        return;
                    }
                    entry.slot.without_io.store(true, Ordering::Release);
                    entry.slot.set(Err(without_io()));
                    drop(connections);
                    return end.notified().await;
                };
                match opened {
                    Ok(connection) => break connection,
                    Err(error) => {
                        connections.break_off();
                        connections.backoff.not_opened(&error);
                        connections.renew(&mut entry).set(Err(error));
                    }
                }
                let turn = unless_ended(&end, connections.backoff.turn(&connections.driver)).await;
                if turn.is_none() || connections.remove_unless_asked_for(&entry) {
                    return;
                }
            };
            entry.slot.set(Ok(Arc::clone(&connection)));
            connections.opened.notify_waiters();
            connections.backoff.opened();
            let broken = connections.broken.swap(false, Ordering::Relaxed);
            if broken
                || connections.listens(id)
                    && connections.driver_broken.swap(false, Ordering::Relaxed)
            {
                connections.replaced.notify_one();
            }
            let driver = Arc::clone(&connections.driver);
            drop(connections);
            if listen_later(&entry, &connection, &driver).await.is_break() {
                return;
            }
            drop(connection);
            end.notified().await;
        });
        slot
    }

    /// Pushes come over the connection of this runtime, the driver's.
    fn listens(&self, runtime: Id) -> bool {
        self.driver.handle().is_some_and(|driver| driver.id() == runtime)
    }

    /// Gives an entry a slot for another try.
    fn renew(&self, entry: &mut RuntimeEntry) -> Arc<OpeningSlot> {
        let end = Arc::clone(&entry.slot.end);
        let next = Arc::new(OpeningSlot { end, ..OpeningSlot::default() });
        self.slots.lock().insert(entry.id, Arc::clone(&next));
        std::mem::replace(&mut entry.slot, next)
    }

    /// Removes an entry whose slot no caller waits for.
    fn remove_unless_asked_for(&self, entry: &RuntimeEntry) -> bool {
        let mut slots = self.slots.lock();
        // One is the map's, one the task's.
        let asked_for = Arc::strong_count(&entry.slot) > 2;
        if !asked_for {
            slots.remove(&entry.id);
        }
        !asked_for
    }

    /// Opens a connection. If that takes longer than a request may, another attempt begins beside it:
    /// one connection that hangs says nothing about the next. The first result counts.
    async fn open_in_time(self: &Arc<Self>, runtime: Id) -> Result<Arc<Connection>, BackendError> {
        let end = Instant::now() + OPENING;
        let mut attempts = Vec::new();
        let mut patience = self.attempt;
        loop {
            attempts.push(Box::pin(self.open(runtime)));
            let first = std::future::poll_fn(|context| {
                for attempt in &mut attempts {
                    if let opened @ Poll::Ready(_) = attempt.as_mut().poll(context) {
                        return opened;
                    }
                }
                Poll::Pending
            });
            let next = (Instant::now() + patience).min(end);
            match self.driver.within(next, first).await {
                Some(opened) => return opened,
                None if end <= Instant::now() => return Err(not_accepted()),
                None => patience = patience.saturating_mul(2),
            }
        }
    }

    async fn open(self: &Arc<Self>, runtime: Id) -> Result<Arc<Connection>, BackendError> {
        match self.open_once(runtime).await {
            // Perhaps for what was sent there, which is not sent twice.
            Err(_) if self.mailbox.broke() => self.open_once(runtime).await,
            opened => opened,
        }
    }

    async fn open_once(self: &Arc<Self>, runtime: Id) -> Result<Arc<Connection>, BackendError> {
        let listens = self.listens(runtime);
        let number = self.mailbox.number();
        loop {
            let listens_apart = listens && self.apart.load(Ordering::Relaxed);
            let (mut connection, plain) = self.connection(number, runtime).await?;
            if plain
                && self
                    .mailbox
                    .look(&mut connection, &self.server)
                    .await
                    .is_err_and(|error| is_over(&error))
            {
                // A proxy that closes at HELLO, and at PUBLISH as well.
                let (connection, _) = self.connection(number, runtime).await?;
                self.mailbox.cannot_tell(&self.server);
                return Ok(Connection::new(connection, None, number, Arc::clone(&self.driver)));
            }
            // Before the first request goes over it: a grant may come before the answer, and tokens say
            // whether they can be handed on.
            let mut apart = None;
            if listens {
                if listens_apart && !self.resp2.load(Ordering::Relaxed) {
                    apart = Some(self.connection(number, runtime).await?.0);
                }
                match self.mailbox.open(number, &mut connection, apart.as_mut(), &self.server).await
                {
                    Ok(Hearing::NoneBeside) if !listens_apart => {
                        // On a connection of its own it may be heard.
                        self.apart.store(true, Ordering::Relaxed);
                        continue;
                    }
                    Ok(_) => {}
                    Err(error) => return Err(describe(error)),
                }
            } else if let Err(error) = self.mailbox.look(&mut connection, &self.server).await
                && is_over(&error)
            {
                return Err(describe(error));
            }
            return Ok(Connection::new(connection, apart, number, Arc::clone(&self.driver)));
        }
    }

    /// A connection that is let in. What is pushed on it is received, and its end is noticed. True if
    /// it had to be one without HELLO, as the server closes others.
    async fn connection(
        self: &Arc<Self>,
        number: u64,
        runtime: Id,
    ) -> Result<(MultiplexedConnection, bool), BackendError> {
        // The timers of this runtime may be blocked or paused, so all limits are the driver's.
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let mut resp2 = self.resp2.load(Ordering::Relaxed);
        let mut closed = 0;
        loop {
            let plain = closed >= CLOSED_TO_HELLO;
            let client = match (plain, resp2) {
                (true, _) => &self.client_plain,
                (_, true) => &self.client_resp2,
                _ => &self.client,
            };
            let mut config = config.clone();
            if !resp2 && !plain {
                let connections = Arc::downgrade(self);
                config = config.set_push_sender(move |info| {
                    if let Some(connections) = connections.upgrade() {
                        connections.receive(number, runtime, &info);
                    }
                    Ok::<(), Infallible>(())
                });
            }
            match client.get_multiplexed_async_connection_with_config(&config).await {
                Ok(connection) => {
                    // A server that is being restarted closes connections, too, so of those that were
                    // closed nothing is remembered.
                    if !plain {
                        self.resp2.store(resp2, Ordering::Relaxed);
                    }
                    self.fallen_back.store(resp2 || plain, Ordering::Relaxed);
                    return Ok((connection, plain));
                }
                Err(error) if !resp2 && !plain && greeting::refuses_resp3(&error) => resp2 = true,
                Err(error) if greeting::is_closed(&error) => {
                    // A server that was just restarted has nothing to say, and is not waited for.
                    if (closed == 1 || resp2)
                        && let Some(reason) = greeting::ask(client, &self.driver).await
                    {
                        return Err(reason.with_source(error));
                    }
                    closed += 1;
                    if resp2 || plain {
                        return Err(describe(error));
                    }
                }
                Err(error) => return Err(greeting::refusal(error)),
            }
        }
    }

    /// Whether the last connection was opened without the protocol that the server was asked for.
    pub(super) fn fell_back(&self) -> bool {
        self.fallen_back.load(Ordering::Relaxed)
    }

    /// Waits until a connection was lost, or opened after that.
    pub(super) async fn replaced(&self) {
        self.replaced.notified().await;
    }

    fn break_off(&self) {
        self.broken.store(true, Ordering::Relaxed);
        self.driver_broken.store(true, Ordering::Relaxed);
    }

    fn lost(&self) {
        self.break_off();
        self.replaced.notify_one();
    }

    /// Why no connection was opened in time.
    pub(super) fn not_accepted(&self) -> BackendError {
        self.backoff.reason().unwrap_or_else(not_accepted)
    }

    /// Takes what the server has sent unasked. It only moves messages: it runs where the connection
    /// is read.
    fn receive(&self, number: u64, runtime: Id, info: &PushInfo) {
        if info.kind != PushKind::Disconnection {
            return self.mailbox.receive(info);
        }
        // The next request finds another one, instead of finding out.
        let mut slots = self.slots.lock();
        self.mailbox.close(number);
        let opened = slots.get(&runtime).and_then(|slot| slot.opened.get());
        let closed = match opened {
            Some(Ok(connection)) if connection.number == number => {
                Some(Arc::clone(&connection.window))
            }
            _ => None,
        };
        if closed.is_some()
            && let Some(slot) = slots.remove(&runtime)
        {
            slot.end.notify_one();
            if let Some(Ok(connection)) = slot.opened.get()
                && !connection.proven.load(Ordering::Relaxed)
            {
                let message = "the server closed a new connection";
                self.backoff.failed(&BackendError::new(BackendErrorKind::Unreachable, message));
            }
            self.lost();
        }
        drop(slots);
        if let Some(window) = closed {
            window.close();
        }
    }

    /// Takes a connection out of use. What is already sent over it may still be answered. With a
    /// failure the next one is opened after a pause.
    fn retire(&self, connection: &Arc<Connection>, failure: Option<&BackendError>) {
        self.mailbox.close(connection.number);
        let mut slots = self.slots.lock();
        let runtime = connection.runtime.id();
        let current = slots.get(&runtime).and_then(|slot| slot.opened.get());
        if matches!(current, Some(Ok(current)) if Arc::ptr_eq(current, connection))
            && let Some(slot) = slots.remove(&runtime)
        {
            slot.end.notify_one();
            if let Some(failure) = failure {
                self.backoff.failed(failure);
            }
            self.lost();
        }
        drop(slots);
        // The next request finds another connection by now.
        connection.window.close();
    }

    /// The open connection that a runtime's requests go over, if there is one.
    pub(super) fn current(&self, runtime: &Handle) -> Option<Arc<Connection>> {
        let slots = self.slots.lock();
        let mut slot = slots.get(&runtime.id())?;
        if slot.without_io.load(Ordering::Acquire) {
            slot = slots.get(&self.driver.handle()?.id())?;
        }
        slot.opened.get()?.as_ref().ok().cloned()
    }

    /// Ends all openings: the manager has ended, and its thread was their clock.
    pub(super) fn end(&self) {
        for slot in self.slots.lock().values() {
            slot.end.notify_one();
        }
    }
}

/// Has the server listened to that did not refuse it, and could not be listened to when the
/// connection was opened. Breaks if the connection has ended.
async fn listen_later(
    entry: &RuntimeEntry,
    connection: &Connection,
    driver: &Driver,
) -> ControlFlow<()> {
    let (mut pause, longest) = LISTENING_PAUSE;
    let mut tries = 0;
    loop {
        let Some(connections) = entry.connections.upgrade() else { return ControlFlow::Break(()) };
        if !connections.mailbox.is_to_be_opened(connection.number) {
            return ControlFlow::Continue(());
        }
        drop(connections);
        let due = Instant::now() + pause;
        if driver.within(due, entry.slot.end.notified()).await.is_some() {
            return ControlFlow::Break(());
        }
        pause = pause.saturating_mul(2).min(longest);
        tries += 1;
        let Some(connections) = entry.connections.upgrade() else { return ControlFlow::Break(()) };
        let (mut multiplexed, mut apart) =
            (connection.multiplexed.clone(), connection.apart.clone());
        let Connections { mailbox, server, .. } = &*connections;
        let opening = mailbox.open(connection.number, &mut multiplexed, apart.as_mut(), server);
        let opened = driver.within(Instant::now() + OPENING, opening).await;
        if let Some(Err(error)) = opened
            && is_over(&error)
        {
            // The next request over it finds out.
            return ControlFlow::Continue(());
        }
        if tries == LISTENING_TRIES {
            mailbox.warn_of_delay(server);
        }
    }
}

pub(super) fn not_accepted() -> BackendError {
    let message = "the server did not accept a connection in time";
    BackendError::new(BackendErrorKind::Timeout, message)
}

fn without_io() -> BackendError {
    let message = "the connection could not be opened on this runtime, which has no I/O";
    BackendError::new(BackendErrorKind::Unreachable, message)
}
