//! The values of single flights.

use std::time::Duration;

use redis::Value;

use super::{
    RedisStore,
    call::{Call, TOKEN, milliseconds, room},
    script::Scripts,
    unexpected,
    window::Lane,
};
use crate::{
    clock::Instant,
    error::BackendError,
    owner::OwnerToken,
    store::values::{StoredValue, ValueName},
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
        let value = self.run(Lane::Acquires, give_up, &call).await?.value;
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
        match self.run(Lane::Acquires, give_up, &call).await?.value {
            Value::Int(recorded) => Ok(recorded == 1),
            other => Err(unexpected(&other)),
        }
    }
}

impl<'a> Call<'a> {
    /// The record of a value beside a lock.
    pub(super) fn record(
        scripts: &'a Scripts,
        name: &ValueName,
        token: &OwnerToken,
        text: &str,
        lasts: Duration,
    ) -> Self {
        let room = room(&name.key, 1) + TOKEN + text.len();
        let mut call = Self::new(&scripts.record, 2, 3, room);
        call.text(name.key.as_str()).text(&name.in_redis());
        call.written(token).number(milliseconds(lasts)).text(text);
        call
    }

    /// The value recorded beside a lock, and how long it lasts.
    pub(super) fn recorded(scripts: &'a Scripts, name: &ValueName) -> Self {
        let mut call = Self::new(&scripts.recorded, 1, 0, room(&name.key, 1));
        call.text(&name.in_redis());
        call
    }
}
