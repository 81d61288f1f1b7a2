//! A question for a lock, with what becomes of it if its answer is not seen.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

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
    store::{Ended, Failed, Fate, Progress, Question, Released, Reply},
};

impl RedisStore {
    pub(crate) async fn ask(
        &self,
        question: Question,
        runtime: Option<Handle>,
        progress: impl Fn(Progress) + Clone + Send + 'static,
    ) -> Result<Reply, Failed> {
        let request = Unsent { store: self, request: Arc::new(Request::new(question)) };
        let mut delayed = false;
        loop {
            let request = &request.request;
            let give_up = Moment::now().after(self.attempt_of(request));
            let link = match self.link_of(runtime.as_ref(), give_up).await {
                Ok(link) => link,
                Err(error) => {
                    // Its tokens are asked under again.
                    request.take_charge();
                    return Err(Failed { error, fate: Fate::Refused });
                }
            };
            let answered = match link.window.enter(Lane::Questions) {
                Room::Now(permit) => {
                    if delayed {
                        progress(Progress::Sent);
                    }
                    let (store, over, request) =
                        (self.clone(), Arc::clone(&link), Arc::clone(request));
                    Some(store.ask_over(over, request, permit).await)
                }
                Room::Full => {
                    // Another thread may send the request as soon as it is queued, and says so.
                    delayed = true;
                    progress(Progress::Delayed);
                    let (store, over, request) =
                        (self.clone(), Arc::clone(&link), Arc::clone(request));
                    let sent = progress.clone();
                    let turn = link.window.turn(link.runtime(), Lane::Questions, move |permit| {
                        sent(Progress::Sent);
                        store.ask_over(over, request, permit)
                    });
                    turn.await
                }
                Room::Closed => None,
            };
            // Else the connection was replaced before the question was sent.
            if let Some(answered) = answered {
                return self.read(answered);
            }
        }
    }

    /// The longest time that the answer to a request may take.
    fn attempt_of(&self, request: &Request) -> Duration {
        attempt(self.inner.attempt, request.question.expire)
    }

    /// Asks over a connection, until the time of an attempt is over.
    async fn ask_over(self, link: Arc<Link>, request: Arc<Request>, permit: Permit) -> Response {
        let heard = self.inner.links.are_heard();
        request.take_charge();
        let sent_at = Moment::now();
        let give_up = sent_at.after(self.attempt_of(&request));
        let permit = Some(permit);
        let (settled, astray) = (false, false);
        let mut open = Open { store: self, link, request, sent_at, permit, settled, astray };
        let Open { store, link, request, .. } = &open;
        let question = &request.question;
        let counts = store.inner.links.count();
        let call = Call::ask(&store.inner.scripts, question, question.wait && heard, counts);
        let sending = store.send_over(link, &call);
        let answer = match store.inner.driver.within(give_up, sending).await {
            Some(answer) => answer,
            None => Err(store.overdue(link)),
        };
        if is_answer(&answer)
            && let Some(permit) = open.permit.take()
        {
            permit.answered();
        }
        // Of a refused one it is known that it was not carried out.
        open.settled = matches!(answer, Err(Failure::Refused(_)));
        open.astray = matches!(answer, Err(Failure::Unknown(_)));
        Response { open, answer }
    }

    fn read(&self, answered: Response) -> Result<Reply, Failed> {
        let Response { mut open, answer } = answered;
        match answer {
            Ok(value) => {
                self.note_refusal(&value);
                let reply = read_reply(&value, open.sent_at);
                // What cannot be read tells nothing: the request may have been carried out.
                open.settled = reply.is_some();
                open.astray = reply.is_none();
                reply.ok_or_else(|| Failed { error: unexpected(&value), fate: Fate::Unanswered })
            }
            Err(failure) => {
                let fate = match failure {
                    Failure::Refused(_) => Fate::Refused,
                    Failure::Aborted(_) | Failure::Unknown(_) | Failure::Overdue(_) => {
                        Fate::Unanswered
                    }
                    Failure::Closed(_) => Fate::Broken,
                };
                Err(Failed { error: failure.into_error(), fate })
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
            let counts = store.inner.links.count();
            let call = Call::release(&store.inner.scripts, &key, &over, counts);
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
            if matches!(released, Ok(Released::Released)) {
                return;
            }
            answered = released.is_ok();
            let until = if answered { arrived } else { over.lasts };
            self.pause(&mut pause, until).await;
        }
    }
}

/// A question, and whether its tokens are cared for if its asker is gone.
struct Request {
    question: Question,
    /// It was sent, or is asked again: it is not for [`Unsent`] to end its tokens.
    in_charge: AtomicBool,
}

impl Request {
    fn new(question: Question) -> Self {
        Self { question, in_charge: AtomicBool::new(false) }
    }

    /// True for the first caller.
    fn take_charge(&self) -> bool {
        !self.in_charge.swap(true, Ordering::AcqRel)
    }
}

/// A question that was not sent yet. If its asker leaves, its tokens are over all the same, so the
/// store releases the token that the question was to end.
struct Unsent<'a> {
    store: &'a RedisStore,
    request: Arc<Request>,
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        let Question { key, instead_of, expire, lasts, .. } = &self.request.question;
        if let Some(token) = instead_of
            && self.request.take_charge()
        {
            let over = Ended::new(token.clone(), *expire, *lasts);
            let (store, key) = (self.store.clone(), key.clone());
            self.store.inner.driver.spawn(async move {
                store.release_at_last(&key, &over).await;
            });
        }
    }
}

/// A question that is out. Its tokens are asked under over one connection at a time: an earlier
/// request over another one may still be on its way, even if that connection has broken, and could
/// take the lock at any later time, also when nobody wants it any more. So where the answer is not
/// seen, the tokens are over, and what they may take is taken back.
struct Open {
    store: RedisStore,
    link: Arc<Link>,
    request: Arc<Request>,
    sent_at: Moment,
    /// Until the answer is there.
    permit: Option<Permit>,
    /// The asker has seen the answer, or the request was not carried out.
    settled: bool,
    /// Something else answered in the server's stead.
    astray: bool,
}

/// An answer that is still to be seen by the asker.
struct Response {
    open: Open,
    answer: Result<Value, Failure>,
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let Question { key, token, instead_of, expire, lasts, .. } = &self.request.question;
        let mut permit = self.permit.take();
        if permit.is_some() && self.sent_at.after(self.store.inner.attempt) <= Moment::now() {
            drop(self.store.overdue(&self.link));
        }
        let asked = Some((token, Moment::now().after(*expire)));
        let passed = instead_of.as_ref().map(|token| (token, *lasts));
        for (token, lasts) in [asked, passed].into_iter().flatten() {
            let (over, key) = (Ended::new(token.clone(), *expire, lasts), key.clone());
            self.store.forget(Arc::clone(&self.link), key, over, permit.take(), self.astray);
        }
    }
}
