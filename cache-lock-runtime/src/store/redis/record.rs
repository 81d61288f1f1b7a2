//! The values of single flights.

use std::time::Duration;

use redis::Value;

use super::{RedisStore, call::Call, unexpected, window::Lane};
use crate::{
    clock::Instant,
    error::BackendError,
    owner::OwnerToken,
    store::{StoredValue, ValueName},
};

impl RedisStore {
    /// One round trip: a plain `GET`, or with `aged` a script that looks at the time, too.
    pub(crate) async fn recorded(
        &self,
        name: &ValueName,
        aged: bool,
        give_up: Instant,
    ) -> Result<Option<StoredValue>, BackendError> {
        let call = match aged {
            true => Call::recorded(&self.inner.scripts, name),
            false => Call::get(&name.in_redis()),
        };
        let value = self.run(Lane::Questions, give_up, &call).await?.value;
        match value {
            Value::Nil => Ok(None),
            Value::BulkString(text) => Ok(Some(StoredValue { text, remaining: Duration::ZERO })),
            Value::Array(pair) => match <[Value; 2]>::try_from(pair) {
                Ok([Value::BulkString(text), Value::Int(left)]) => {
                    // A record without an end is none of ours, but its time is not over.
                    let remaining =
                        u64::try_from(left).map_or(Duration::MAX, Duration::from_millis);
                    Ok(Some(StoredValue { text, remaining }))
                }
                Ok(pair) => Err(unexpected(&Value::Array(pair.into()))),
                Err(other) => Err(unexpected(&Value::Array(other))),
            },
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) async fn record(
        &self,
        name: &ValueName,
        token: &OwnerToken,
        text: &str,
        lasts: Duration,
        give_up: Instant,
    ) -> Result<bool, BackendError> {
        let call = Call::record(&self.inner.scripts, name, token, text, lasts);
        match self.run(Lane::Questions, give_up, &call).await?.value {
            Value::Int(recorded) => Ok(recorded == 1),
            other => Err(unexpected(&other)),
        }
    }
}
