//! An acquisition, with what becomes of requests whose answers were not seen.

use std::{mem, pin::pin, sync::Arc, time::Duration};

use redis::Value;

use super::{
    ATTEMPTS_IN_FLIGHT, FENCE_TTL_MS, Inner, RELEASE_PAUSE, RedisStore, failure::Failure,
    link::Link, milliseconds, unexpected,
};
use crate::{
    clock::Moment,
    error::BackendError,
    fence::FencingToken,
    key::LockKey,
    owner::OwnerToken,
    store::{Answer, Claim, LockStore, Released},
};

pub(super) struct RedisClaim {
    store: RedisStore,
    key: LockKey,
    fence_key: String,
    owner: OwnerToken,
    /// The connection over which a request is out that was not answered, and the lease that it
    /// asks for.
    unanswered: Option<(Arc<Link>, Duration)>,
}

impl RedisClaim {
    pub(super) fn new(store: RedisStore, key: LockKey, owner: OwnerToken) -> Self {
        let fence_key = key.fence_key();
        Self { store, key, fence_key, owner, unanswered: None }
    }

    /// Gets ready to ask over `link`.
    ///
    /// Over the same connection, requests are carried out in order, so the same token may be asked
    /// under again: it finds the lock its own if the earlier request took it. But an earlier request
    /// over another connection may still be on its way, even if that one has broken, and could take
    /// the lock at any later time, also when this acquisition has ended. So a token is asked under
    /// over one connection only: here a new one is, after what the old one may have taken was
    /// released, and the old request is forgotten.
    ///
    /// Says whether an earlier request over this same connection was not answered.
    async fn turn_to(
        &mut self,
        link: &Arc<Link>,
        expire: Duration,
        give_up: Moment,
    ) -> Result<bool, Failure> {
        let mut doubtful = false;
        match self.unanswered.take() {
            Some((earlier, lease)) if !Arc::ptr_eq(&earlier, link) => {
                let owner = self.owner.successor();
                let owner = mem::replace(&mut self.owner, owner);
                self.store.forget(earlier, self.key.clone(), owner.clone(), lease);
                let script = &self.store.inner.scripts.release;
                let (key, owner) = (self.key.as_str(), owner.to_string());
                self.store.run_over(link, script, &[key], &[&owner], give_up).await?;
            }
            earlier => doubtful = earlier.is_some(),
        }
        self.unanswered = Some((Arc::clone(link), expire));
        Ok(doubtful)
    }

    async fn ask_over(
        &mut self,
        link: &Arc<Link>,
        expire: Duration,
        give_up: Moment,
    ) -> Result<Answer, Failure> {
        let doubtful = self.turn_to(link, expire, give_up).await?;
        let owner = self.owner.to_string();
        let keys = [self.key.as_str(), &self.fence_key];
        let arguments = [&*owner, &*milliseconds(expire), FENCE_TTL_MS];
        let script = &self.store.inner.scripts.acquire;
        let sent_at = Moment::now();
        let answer = self.store.run_over(link, script, &keys, &arguments, give_up).await;
        match &answer {
            Ok(_) => self.unanswered = None,
            // It took nothing; but what an earlier one took is not found out by that.
            Err(Failure::Refused(_)) if !doubtful => self.unanswered = None,
            Err(_) => {}
        }
        let answer = answer?;
        let Value::Array(reply) = &answer else {
            return Err(Failure::Refused(unexpected(&answer)));
        };
        match reply[..] {
            [Value::Int(1), Value::Int(fence)] => Ok(Answer::Granted {
                owner: self.owner.clone(),
                fence: FencingToken::new(fence),
                sent_at,
            }),
            [Value::Int(0), Value::Int(remaining)] => Ok(Answer::Busy {
                remaining: u64::try_from(remaining).ok().map(Duration::from_millis),
            }),
            _ => Err(Failure::Refused(unexpected(&answer))),
        }
    }
}

impl Claim for RedisClaim {
    async fn ask(&mut self, expire: Duration, give_up: Moment) -> Result<Answer, BackendError> {
        // A connection that turns out to be closed is replaced once, as in `RedisStore::run`.
        let mut replaced = false;
        loop {
            let link = self.store.link(give_up).await?;
            match self.ask_over(&link, expire, give_up).await {
                Err(Failure::Closed(_)) if !replaced => replaced = true,
                answer => return answer.map_err(Failure::into_error),
            }
        }
    }
}

impl Drop for RedisClaim {
    fn drop(&mut self) {
        if let Some((link, expire)) = self.unanswered.take() {
            self.store.forget(link, self.key.clone(), self.owner.clone(), expire);
        }
    }
}

impl RedisStore {
    /// Takes back a request that went over `link` and was not answered.
    ///
    /// Behind it on the same connection a release is sure to find what it took. If that connection
    /// does not answer, another one is asked as well, which helps if the request was carried out
    /// already. If it is over, what was sent over it may still arrive, so the release is repeated;
    /// the end of the lease is the floor.
    fn forget(&self, link: Arc<Link>, key: LockKey, owner: OwnerToken, expire: Duration) {
        let store = self.clone();
        self.inner.driver.spawn(async move {
            let attempt = store.inner.attempt;
            let until =
                Moment::now().after(expire.min(attempt * ATTEMPTS_IN_FLIGHT)).after(attempt);
            let token = owner.to_string();
            let script = &store.inner.scripts.release;
            let keys = [key.as_str()];
            let arguments = [&*token];
            let mut behind = pin!(store.run_over(&link, script, &keys, &arguments, until));
            let soon = Moment::now().after(attempt);
            let answer = match store.inner.driver.within(soon, behind.as_mut()).await {
                Some(answer) => answer,
                None => {
                    store.release_until(&key, &owner, until).await;
                    behind.await
                }
            };
            if answer.is_err() {
                store.release_stray(&key, &owner, until).await;
            }
            tracing::debug!(%key, "unanswered request taken back");
        });
    }

    /// Releases what a request takes that may still be on its way, but for no longer than `until`.
    async fn release_stray(&self, key: &LockKey, owner: &OwnerToken, until: Moment) {
        let Inner { driver, attempt, .. } = &*self.inner;
        let mut pause = RELEASE_PAUSE;
        while Moment::now() < until {
            let give_up = Moment::now().after(*attempt);
            if matches!(self.release(key, owner, give_up).await, Ok(Released::Released)) {
                return;
            }
            driver.sleep_until(Moment::now().after(pause).min(until)).await;
            pause *= 2;
        }
    }
}
