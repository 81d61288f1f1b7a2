//! A question for a lock, with what becomes of it if its answer is not seen.

use std::{pin::pin, sync::Arc};

use tokio::runtime::Handle;

use super::{
    ATTEMPTS_IN_FLIGHT, Inner, RELEASE_PAUSE, RedisStore,
    call::{Call, read_released, read_reply},
    failure::Failure,
    link::Link,
    unexpected,
};
use crate::{
    clock::Moment,
    key::LockKey,
    store::{Ended, Failed, Fate, Question, Released, Reply},
};

impl RedisStore {
    pub(crate) async fn ask(
        &self,
        question: Question,
        runtime: Option<Handle>,
    ) -> Result<Reply, Failed> {
        let mut unsent = Unsent { store: self, question: &question, settled: false };
        let link = self.link_of(runtime.as_ref()).await;
        unsent.settled = true;
        let link = match link {
            Ok(link) => link,
            Err(error) => return Err(Failed { error, fate: Fate::Refused }),
        };
        let listed = question.wait && self.inner.links.are_heard();
        let sent_at = Moment::now();
        let mut open = Open {
            store: self,
            link,
            question: &question,
            sent_at,
            answered: false,
            astray: false,
        };
        let call = Call::ask(&self.inner.scripts, &question, listed);
        let answer = self.send_over(&open.link, &call).await;
        // Of a refused one it is known that it was not carried out.
        open.answered = matches!(answer, Ok(_) | Err(Failure::Refused(_)));
        open.astray = matches!(answer, Err(Failure::Unknown(_)));
        match answer {
            Ok(value) => {
                self.note_refusal(&value);
                let reply = read_reply(&value, sent_at);
                // What cannot be read tells nothing: the request may have been carried out.
                open.answered = reply.is_some();
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
    /// already. If it is over, what was sent over it may still arrive, so the release is repeated;
    /// the end of the lease is the floor.
    ///
    /// `astray`: what answered in the server's stead keeps no order, so that a release which finds
    /// nothing may have come too early.
    fn forget(&self, link: Arc<Link>, key: LockKey, over: Ended, astray: bool) {
        let store = self.clone();
        self.inner.driver.spawn(async move {
            let attempt = store.inner.attempt;
            let until =
                Moment::now().after(over.expire.min(attempt * ATTEMPTS_IN_FLIGHT)).after(attempt);
            let call = Call::release(&store.inner.scripts, &key, &over);
            let mut behind = pin!(store.run_over(&link, &call, until));
            let soon = Moment::now().after(attempt);
            let answer = match store.inner.driver.within(soon, behind.as_mut()).await {
                Some(answer) => answer,
                None => {
                    store.release_until(&key, &over, until).await;
                    behind.await
                }
            };
            let found = answer.map(|value| read_released(&value));
            if found.is_err() || astray && !matches!(found, Ok(Some(true))) {
                store.release_stray(&key, &over, until).await;
            }
            tracing::debug!(%key, "unanswered request taken back");
        });
    }

    /// Releases what a request takes that may still be on its way, but for no longer than `until`.
    async fn release_stray(&self, key: &LockKey, over: &Ended, until: Moment) {
        let Inner { driver, attempt, .. } = &*self.inner;
        let mut pause = RELEASE_PAUSE;
        while Moment::now() < until {
            let give_up = Moment::now().after(*attempt);
            let released = self.release(key, over, give_up).await;
            if matches!(released, Ok(Released::Released)) {
                return;
            }
            driver.sleep_until(Moment::now().after(pause).min(until)).await;
            pause *= 2;
        }
    }
}

/// A question that has no connection yet. If nobody waits for that any longer, its tokens are over
/// all the same, so the one that it was to end is released.
struct Unsent<'a> {
    store: &'a RedisStore,
    question: &'a Question,
    /// There is a connection, or it is said that there is none.
    settled: bool,
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        let Question { key, instead_of, expire, .. } = self.question;
        if let (false, Some(token)) = (self.settled, instead_of) {
            let over = Ended::new(token.clone(), *expire);
            let (store, key, until) =
                (self.store.clone(), key.clone(), Moment::now().after(*expire));
            self.store.inner.driver.spawn(async move {
                store.release_until(&key, &over, until).await;
            });
        }
    }
}

/// A question that is out. Its tokens are asked under over one connection at a time: an earlier
/// request over another one may still be on its way, even if that connection has broken, and could
/// take the lock at any later time, also when nobody wants it any more. So where the answer is not
/// seen, the tokens are over, and what they may take is taken back.
struct Open<'a> {
    store: &'a RedisStore,
    link: Arc<Link>,
    question: &'a Question,
    sent_at: Moment,
    answered: bool,
    /// Something else answered in the server's stead.
    astray: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let Question { key, token, instead_of, expire, .. } = self.question;
        if self.sent_at.after(self.store.inner.attempt) <= Moment::now() {
            drop(self.store.overdue(&self.link));
        }
        for token in [Some(token), instead_of.as_ref()].into_iter().flatten() {
            let over = Ended::new(token.clone(), *expire);
            self.store.forget(Arc::clone(&self.link), key.clone(), over, self.astray);
        }
    }
}
