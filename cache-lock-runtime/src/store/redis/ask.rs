//! A question for a lock, with what becomes of it if its answer is not seen.

use std::{pin::pin, sync::Arc};

use tokio::runtime::Handle;

use super::{
    ATTEMPTS_IN_FLIGHT, RELEASE_PAUSE, RedisStore,
    call::{Call, read_reply},
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
        let mut open = Open { store: self, link, question: &question, sent_at, answered: false };
        let call = Call::ask(&self.inner.scripts, &question, listed);
        let answer = self.send_over(&open.link, &call).await;
        // Of a refused one it is known that it was not carried out.
        open.answered = matches!(answer, Ok(_) | Err(Failure::Refused(_)));
        match answer {
            Ok(value) => {
                self.note_refusal(&value);
                read_reply(&value, sent_at)
                    .ok_or_else(|| Failed { error: unexpected(&value), fate: Fate::Refused })
            }
            Err(failure) => {
                let fate = match failure {
                    Failure::Refused(_) => Fate::Refused,
                    Failure::Overdue(_) => Fate::Unanswered,
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
    fn forget(&self, link: Arc<Link>, key: LockKey, over: Ended) {
        let store = self.clone();
        self.inner.driver.spawn(async move {
            let attempt = store.inner.attempt;
            let now = Moment::now();
            // What is in flight may be carried out by then.
            let arrived = now.after(over.expire.min(attempt * ATTEMPTS_IN_FLIGHT)).after(attempt);
            let over = Ended { lasts: over.lasts.max(now).after(attempt), ..over };
            let call = Call::release(&store.inner.scripts, &key, &over);
            let mut behind = pin!(store.run_over(&link, &call, arrived));
            let soon = Moment::now().after(attempt);
            let answer = match store.inner.driver.within(soon, behind.as_mut()).await {
                Some(answer) => answer,
                None => {
                    store.release_at_last(&key, &over).await;
                    behind.await
                }
            };
            if answer.is_err() {
                store.release_stray(&key, &over, arrived).await;
            }
            tracing::debug!(%key, "unanswered request taken back");
        });
    }

    /// Releases what a request takes that may still be on its way, until it has `arrived`. If the server
    /// does not answer, it is asked until the record has run out.
    async fn release_stray(&self, key: &LockKey, over: &Ended, arrived: Moment) {
        let (mut pause, mut answered) = (RELEASE_PAUSE, false);
        while Moment::now() < if answered { arrived } else { over.lasts } {
            let give_up = Moment::now().after(self.inner.attempt);
            let released = self.release(key, over, give_up).await;
            if matches!(released, Ok(Released::Released)) {
                return;
            }
            answered = released.is_ok();
            let until = if answered { arrived } else { over.lasts };
            self.pause(&mut pause, until).await;
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
        let Question { key, instead_of, expire, lasts, .. } = self.question;
        if let (false, Some(token)) = (self.settled, instead_of) {
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
struct Open<'a> {
    store: &'a RedisStore,
    link: Arc<Link>,
    question: &'a Question,
    sent_at: Moment,
    answered: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let Question { key, token, instead_of, expire, lasts, .. } = self.question;
        if self.sent_at.after(self.store.inner.attempt) <= Moment::now() {
            drop(self.store.overdue(&self.link));
        }
        let asked = Some((token, Moment::now().after(*expire)));
        let passed = instead_of.as_ref().map(|token| (token, *lasts));
        for (token, lasts) in [asked, passed].into_iter().flatten() {
            let over = Ended::new(token.clone(), *expire, lasts);
            self.store.forget(Arc::clone(&self.link), key.clone(), over);
        }
    }
}
