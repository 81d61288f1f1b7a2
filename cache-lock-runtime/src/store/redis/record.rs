//! The values of single flights.

use std::{sync::Arc, time::Duration};

use redis::Value;

use super::{
    RedisStore,
    call::Call,
    failure::Failure,
    link::{Link, settle},
    unexpected,
    window::Lane,
};
use crate::{
    clock::Moment,
    error::BackendError,
    owner::OwnerToken,
    store::{RecordName, Recorded},
};

impl RedisStore {
    /// One round trip: a plain `GET`, or with `aged` a script that looks at the time, too.
    pub(crate) async fn recorded(
        &self,
        name: &RecordName,
        aged: bool,
        give_up: Moment,
    ) -> Result<Option<Recorded>, BackendError> {
        let value = if aged {
            let name = name.clone();
            let send = move |store: Self, link: Arc<Link>| {
                let name = name.clone();
                async move { store.send_over(&link, &Call::recorded(&store.inner.scripts, &name)).await }
            };
            self.run(Lane::Questions, give_up, send).await?.value
        } else {
            self.get(&name.in_redis(), give_up).await?
        };
        match value {
            Value::Nil => Ok(None),
            Value::BulkString(text) => Ok(Some(Recorded { text, remaining: Duration::ZERO })),
            Value::Array(pair) => match <[Value; 2]>::try_from(pair) {
                Ok([Value::BulkString(text), Value::Int(left)]) => {
                    // A record without an end is none of ours, but its time is not over.
                    let remaining =
                        u64::try_from(left).map_or(Duration::MAX, Duration::from_millis);
                    Ok(Some(Recorded { text, remaining }))
                }
                Ok(pair) => Err(unexpected(&Value::Array(pair.into()))),
                Err(other) => Err(unexpected(&Value::Array(other))),
            },
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) async fn record(
        &self,
        name: &RecordName,
        token: &OwnerToken,
        text: &str,
        lasts: Duration,
        give_up: Moment,
    ) -> Result<bool, BackendError> {
        let request = (name.clone(), token.clone(), Arc::<str>::from(text));
        let send = move |store: Self, link: Arc<Link>| {
            let (name, token, text) = request.clone();
            async move {
                let call = Call::record(&store.inner.scripts, &name, &token, &text, lasts);
                store.send_over(&link, &call).await
            }
        };
        match self.run(Lane::Questions, give_up, send).await?.value {
            Value::Int(recorded) => Ok(recorded == 1),
            other => Err(unexpected(&other)),
        }
    }

    async fn get(&self, name: &str, give_up: Moment) -> Result<Value, BackendError> {
        let mut command = redis::cmd("GET");
        command.arg(name);
        let command = Arc::new(command);
        let send = move |store: Self, link: Arc<Link>| {
            let command = Arc::clone(&command);
            async move {
                let answer = link.send(&command).await.map_err(Failure::from);
                settle(&store.inner.links, &link, &answer, store.inner.attempt);
                answer
            }
        };
        Ok(self.run(Lane::Questions, give_up, send).await?.value)
    }
}
