//! The values of single flights.

use std::time::Duration;

use redis::Value;

use super::{RedisStore, call::Call, failure::Failure, link::settle, unexpected};
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
            let call = Call::recorded(&self.inner.scripts, name);
            self.run(&call, give_up).await?.value
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
        let call = Call::record(&self.inner.scripts, name, token, text, lasts);
        match self.run(&call, give_up).await?.value {
            Value::Int(recorded) => Ok(recorded == 1),
            other => Err(unexpected(&other)),
        }
    }

    async fn get(&self, name: &str, give_up: Moment) -> Result<Value, BackendError> {
        let mut command = redis::cmd("GET");
        command.arg(name);
        let mut replaced = false;
        loop {
            let link = self.link(give_up).await?;
            let sending = async {
                let answer = link.send(&command).await.map_err(Failure::from);
                settle(&self.inner.links, &link, &answer, self.inner.attempt);
                answer
            };
            let answer = match self.inner.driver.within(give_up, sending).await {
                Some(answer) => answer,
                None => Err(self.overdue(&link)),
            };
            match answer {
                Ok(value) => return Ok(value),
                Err(Failure::Closed(_)) if !replaced => replaced = true,
                Err(failure) => return Err(failure.into_error()),
            }
        }
    }
}
