//! A request for a lock, and what becomes of it if its answer is not seen.

use std::{mem, pin::pin, sync::Arc, time::Duration};

use redis::Value;
use tokio::runtime::Handle;

use super::{
    ATTEMPTS_IN_FLIGHT, RELEASE_PAUSE, RedisStore,
    call::{Call, read_acquired, read_released},
    connections::Connection,
    failure::Failure,
    is_answer, unexpected,
    window::{Lane, Permit, Room},
};
use crate::{
    clock::Instant,
    key::LockKey,
    lease::attempt,
    log,
    protocol::messages::{
        AcquireError, AcquireRequest, AcquireResponse, Fate, Progress, ReleaseOutcome,
        ReleaseRequest, RequestKind,
    },
};

impl RedisStore {
    pub(crate) async fn acquire(
        &self,
        request: &AcquireRequest,
        runtime: Option<&Handle>,
        progress: &impl Fn(Progress),
    ) -> Result<AcquireResponse, AcquireError> {
        let mut pending = PendingAcquire { store: self, request, state: SendState::NotSent };
        let mut delayed = false;
        loop {
            let give_up = Instant::now() + pending.attempt();
            let connection = match self.connection_of(runtime, give_up).await {
                Ok(connection) => connection,
                Err(error) => {
                    // Its tokens are asked under again.
                    pending.state = SendState::Settled;
                    return Err(AcquireError { error, fate: Fate::Refused });
                }
            };
            let permit = match connection.window.enter(Lane::Acquires) {
                Room::Now(permit) => Some(permit),
                Room::Full => {
                    if !delayed {
                        delayed = true;
                        progress(Progress::Delayed);
                    }
                    connection.window.turn(Lane::Acquires).await
                }
                Room::Closed => None,
            };
            // Otherwise the connection was replaced before the request was sent.
            if let Some(permit) = permit {
                if delayed {
                    progress(Progress::Sent);
                }
                // Boxed while it is in flight: a request that waits for its turn needs little room.
                return Box::pin(pending.send(connection, permit)).await;
            }
        }
    }

    /// Takes back a request that went over `connection` and was not answered.
    ///
    /// Behind it on the same connection a release is sure to find what it took. If that connection
    /// does not answer, another one is asked as well, which helps if the request was carried out
    /// already. If it is over, what was sent over it may still arrive, so the release is repeated.
    /// While no server answers it is tried until the record has run out.
    ///
    /// `astray`: what answered in the server's stead keeps no order, so that a release which finds
    /// nothing may have come too early.
    fn forget(
        &self,
        connection: Arc<Connection>,
        key: LockKey,
        over: ReleaseRequest,
        mut permit: Option<Permit>,
        astray: bool,
    ) {
        let store = self.clone();
        self.inner.driver.spawn(async move {
            let attempt = store.inner.attempt;
            let now = Instant::now();
            // What is in flight may be carried out by then.
            let arrived = (now + over.expire.min(attempt * ATTEMPTS_IN_FLIGHT)) + attempt;
            let over = ReleaseRequest { lasts: over.lasts.max(now) + attempt, ..over };
            let rights = store.inner.connections.rights();
            let call = Call::release(&store.inner.scripts, &key, &over, rights);
            let mut behind = pin!(store.run_over(&connection, &call, arrived));
            let soon = Instant::now() + attempt;
            let answer = match store.inner.driver.within(soon, behind.as_mut()).await {
                Some(answer) => answer,
                None => {
                    drop(permit.take());
                    store.release_at_last(&key, &over).await;
                    behind.await
                }
            };
            // The server was busy with the request until now.
            drop(permit);
            let found = answer.map(|value| read_released(&value));
            if found.is_err() || astray && !matches!(found, Ok(Some(true))) {
                store.release_stray(&key, &over, arrived).await;
            }
            log::debug!(%key, "unanswered request taken back");
        });
    }

    /// Releases what a request takes that may still be on its way, until it has `arrived`. If the server
    /// does not answer, it is asked until the record has run out.
    async fn release_stray(&self, key: &LockKey, over: &ReleaseRequest, arrived: Instant) {
        let (mut pause, mut answered) = (RELEASE_PAUSE, false);
        while Instant::now() < if answered { arrived } else { over.lasts } {
            let released = self.release(key, over, over.lasts).await;
            if matches!(released, Ok(ReleaseOutcome::Released)) {
                return;
            }
            answered = released.is_ok();
            let until = if answered { arrived } else { over.lasts };
            self.pause(&mut pause, until).await;
        }
    }
}

/// A request for a lock, and what becomes of its tokens if its asker is gone.
///
/// Its tokens are asked under over one connection at a time: an earlier request over another one may
/// still be on its way, even if that connection has broken, and could take the lock at any later time,
/// also when no caller wants it any more. So where the answer is not seen, the tokens are over, and what
/// they may take is taken back.
struct PendingAcquire<'a> {
    store: &'a RedisStore,
    request: &'a AcquireRequest,
    state: SendState,
}

enum SendState {
    NotSent,
    Sent(SentAcquire),
    /// The asker has seen the answer, or the request was not carried out.
    Settled,
}

/// A request that is out.
struct SentAcquire {
    connection: Arc<Connection>,
    sent_at: Instant,
    /// Until the answer is there.
    permit: Option<Permit>,
    /// Something else answered in the server's stead.
    astray: bool,
}

impl PendingAcquire<'_> {
    /// The longest time that the answer may take.
    fn attempt(&self) -> Duration {
        attempt(self.store.inner.attempt, self.request.expire)
    }

    /// Asks over a connection, until the time of an attempt is over.
    async fn send(
        &mut self,
        connection: Arc<Connection>,
        permit: Permit,
    ) -> Result<AcquireResponse, AcquireError> {
        let heard = self.store.inner.connections.are_heard();
        let sent_at = Instant::now();
        let give_up = sent_at + self.attempt();
        let out = SentAcquire {
            connection: Arc::clone(&connection),
            sent_at,
            permit: Some(permit),
            astray: false,
        };
        self.state = SendState::Sent(out);
        let answer = {
            let RedisStore { inner } = self.store;
            let (request, rights) = (self.request, inner.connections.rights());
            let call = Call::acquire(&inner.scripts, request, request.wait && heard, rights);
            self.store.run_over(&connection, &call, give_up).await
        };
        if let SendState::Sent(out) = &mut self.state {
            if is_answer(&answer)
                && let Some(permit) = out.permit.take()
            {
                permit.answered();
            }
            out.astray = matches!(answer, Err(Failure::Unknown(_)));
        }
        self.read(answer, sent_at)
    }

    fn read(
        &mut self,
        answer: Result<Value, Failure>,
        sent_at: Instant,
    ) -> Result<AcquireResponse, AcquireError> {
        let failure = match answer {
            Ok(value) => {
                self.store.note_refusal(&value);
                if let Some(response) = read_acquired(&value, sent_at) {
                    self.state = SendState::Settled;
                    return Ok(response);
                }
                // What cannot be read tells nothing: the request may have been carried out.
                if let SendState::Sent(out) = &mut self.state {
                    out.astray = true;
                }
                return Err(AcquireError { error: unexpected(&value), fate: Fate::Unanswered });
            }
            Err(failure) => failure,
        };
        let fate = match failure {
            Failure::Refused(_) => {
                // It is known that it was not carried out.
                self.state = SendState::Settled;
                Fate::Refused
            }
            Failure::Aborted(_) | Failure::Unknown(_) | Failure::Overdue(_) => Fate::Unanswered,
            Failure::Closed(_) => Fate::Broken,
        };
        Err(AcquireError { error: failure.into_error(), fate })
    }
}

impl Drop for PendingAcquire<'_> {
    fn drop(&mut self) {
        let Self { store, request, state } = self;
        let AcquireRequest { key, token, kind, expire, .. } = request;
        let old = match kind {
            // A yield is not made up for later.
            RequestKind::Pass(old) => Some(ReleaseRequest { yields: false, ..old.clone() }),
            RequestKind::New | RequestKind::Again | RequestKind::Claim => None,
        };
        let out = match mem::replace(state, SendState::Settled) {
            SendState::Settled => return,
            // Its tokens are over all the same, so the old one is released.
            SendState::NotSent => {
                if let Some(over) = old {
                    let (store, key) = (store.clone(), key.clone());
                    let driver = Arc::clone(&store.inner.driver);
                    driver.spawn(async move {
                        store.release_at_last(&key, &over).await;
                    });
                }
                return;
            }
            SendState::Sent(out) => out,
        };
        let SentAcquire { connection, sent_at, mut permit, astray } = out;
        if permit.is_some() && sent_at + store.inner.attempt <= Instant::now() {
            drop(store.overdue(&connection));
        }
        let new = ReleaseRequest::new(token.clone(), *expire, Instant::now() + *expire);
        for over in [Some(new), old].into_iter().flatten() {
            store.forget(Arc::clone(&connection), key.clone(), over, permit.take(), astray);
        }
    }
}
