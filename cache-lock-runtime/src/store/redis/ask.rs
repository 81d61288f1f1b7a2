//! A question for a lock, with what becomes of it if its answer is not seen.

use std::{mem, pin::pin, sync::Arc, time::Duration};

use redis::Value;
use tokio::runtime::Handle;

use super::{
    ATTEMPTS_IN_FLIGHT, RELEASE_PAUSE, RedisStore,
    call::{Call, read_released, read_reply},
    failure::Failure,
    is_answer,
    link::Link,
    unexpected,
    window::{Lane, Permit, Room},
};
use crate::{
    clock::Moment,
    key::LockKey,
    lease::attempt,
    log,
    store::{Ended, Failed, Fate, Progress, Question, ReleaseOutcome, Reply},
};

impl RedisStore {
    pub(crate) async fn ask(
        &self,
        question: &Question,
        runtime: Option<&Handle>,
        progress: &impl Fn(Progress),
    ) -> Result<Reply, Failed> {
        let mut request = Request { store: self, question, fate: Sent::No };
        let mut delayed = false;
        loop {
            let give_up = Moment::now().after(request.attempt());
            let link = match self.link_of(runtime, give_up).await {
                Ok(link) => link,
                Err(error) => {
                    // Its tokens are asked under again.
                    request.fate = Sent::Settled;
                    return Err(Failed { error, fate: Fate::Refused });
                }
            };
            let permit = match link.window.enter(Lane::Questions) {
                Room::Now(permit) => Some(permit),
                Room::Full => {
                    if !delayed {
                        delayed = true;
                        progress(Progress::Delayed);
                    }
                    link.window.turn(Lane::Questions).await
                }
                Room::Closed => None,
            };
            // Else the connection was replaced before the question was sent.
            if let Some(permit) = permit {
                if delayed {
                    progress(Progress::Sent);
                }
                // Boxed while it is in flight: a question that waits for its turn needs little room.
                return Box::pin(request.send(link, permit)).await;
            }
        }
    }

    /// Takes back a request that went over `link` and was not answered.
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
        link: Arc<Link>,
        key: LockKey,
        over: Ended,
        mut permit: Option<Permit>,
        astray: bool,
    ) {
        let store = self.clone();
        self.inner.driver.spawn(async move {
            let attempt = store.inner.attempt;
            let now = Moment::now();
            // What is in flight may be carried out by then.
            let arrived = now.after(over.expire.min(attempt * ATTEMPTS_IN_FLIGHT)).after(attempt);
            let over = Ended { lasts: over.lasts.max(now).after(attempt), ..over };
            let rights = store.inner.links.rights();
            let call = Call::release(&store.inner.scripts, &key, &over, rights);
            let mut behind = pin!(store.run_over(&link, &call, arrived));
            let soon = Moment::now().after(attempt);
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
    async fn release_stray(&self, key: &LockKey, over: &Ended, arrived: Moment) {
        let (mut pause, mut answered) = (RELEASE_PAUSE, false);
        while Moment::now() < if answered { arrived } else { over.lasts } {
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

/// A question, and what becomes of its tokens if its asker is gone.
///
/// Its tokens are asked under over one connection at a time: an earlier request over another one may
/// still be on its way, even if that connection has broken, and could take the lock at any later time,
/// also when nobody wants it any more. So where the answer is not seen, the tokens are over, and what
/// they may take is taken back.
struct Request<'a> {
    store: &'a RedisStore,
    question: &'a Question,
    fate: Sent,
}

/// Whether a question was sent.
enum Sent {
    No,
    Out(Out),
    /// The asker has seen the answer, or the request was not carried out.
    Settled,
}

/// A question that is out.
struct Out {
    link: Arc<Link>,
    sent_at: Moment,
    /// Until the answer is there.
    permit: Option<Permit>,
    /// Something else answered in the server's stead.
    astray: bool,
}

impl Request<'_> {
    /// The longest time that the answer may take.
    fn attempt(&self) -> Duration {
        attempt(self.store.inner.attempt, self.question.expire)
    }

    /// Asks over a connection, until the time of an attempt is over.
    async fn send(&mut self, link: Arc<Link>, permit: Permit) -> Result<Reply, Failed> {
        let heard = self.store.inner.links.are_heard();
        let sent_at = Moment::now();
        let give_up = sent_at.after(self.attempt());
        let out = Out { link: Arc::clone(&link), sent_at, permit: Some(permit), astray: false };
        self.fate = Sent::Out(out);
        let answer = {
            let RedisStore { inner } = self.store;
            let (question, rights) = (self.question, inner.links.rights());
            let call = Call::ask(&inner.scripts, question, question.wait && heard, rights);
            self.store.run_over(&link, &call, give_up).await
        };
        if let Sent::Out(out) = &mut self.fate {
            if is_answer(&answer)
                && let Some(permit) = out.permit.take()
            {
                permit.answered();
            }
            out.astray = matches!(answer, Err(Failure::Unknown(_)));
        }
        self.read(answer, sent_at)
    }

    fn read(&mut self, answer: Result<Value, Failure>, sent_at: Moment) -> Result<Reply, Failed> {
        let failure = match answer {
            Ok(value) => {
                self.store.note_refusal(&value);
                if let Some(reply) = read_reply(&value, sent_at) {
                    self.fate = Sent::Settled;
                    return Ok(reply);
                }
                // What cannot be read tells nothing: the request may have been carried out.
                if let Sent::Out(out) = &mut self.fate {
                    out.astray = true;
                }
                return Err(Failed { error: unexpected(&value), fate: Fate::Unanswered });
            }
            Err(failure) => failure,
        };
        let fate = match failure {
            Failure::Refused(_) => {
                // It is known that it was not carried out.
                self.fate = Sent::Settled;
                Fate::Refused
            }
            Failure::Aborted(_) | Failure::Unknown(_) | Failure::Overdue(_) => Fate::Unanswered,
            Failure::Closed(_) => Fate::Broken,
        };
        Err(Failed { error: failure.into_error(), fate })
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        let Self { store, question, fate } = self;
        let Question { key, token, instead_of, expire, lasts, .. } = question;
        let out = match mem::replace(fate, Sent::Settled) {
            Sent::Settled => return,
            // Its tokens are over all the same, so the one that it was to end is released.
            Sent::No => {
                if let Some(token) = instead_of {
                    let over = Ended::new(token.clone(), *expire, *lasts);
                    let (store, key) = (store.clone(), key.clone());
                    let driver = Arc::clone(&store.inner.driver);
                    driver.spawn(async move {
                        store.release_at_last(&key, &over).await;
                    });
                }
                return;
            }
            Sent::Out(out) => out,
        };
        let Out { link, sent_at, mut permit, astray } = out;
        if permit.is_some() && sent_at.after(store.inner.attempt) <= Moment::now() {
            drop(store.overdue(&link));
        }
        let asked = Some((token, Moment::now().after(*expire)));
        let passed = instead_of.as_ref().map(|token| (token, *lasts));
        for (token, lasts) in [asked, passed].into_iter().flatten() {
            let (over, key) = (Ended::new(token.clone(), *expire, lasts), key.clone());
            store.forget(Arc::clone(&link), key, over, permit.take(), astray);
        }
    }
}
