//! Calls of the scripts: what a request sends, and what its answer says.

use std::time::Duration;

use redis::{Cmd, Value};

use super::script::{LuaScript, Scripts};
use crate::{
    clock::Moment,
    fence::Numbers,
    key::LockKey,
    owner::OwnerToken,
    store::{Ended, Extended, Extension, Question, RecordName, Reply},
};

/// How long a grant lasts that is not claimed: its manager may have been stopped.
const CLAIM: Duration = Duration::from_millis(500);

/// A call of a script, to be sent as often as needed.
pub(super) struct Call<'a> {
    script: &'a LuaScript,
    by_hash: Cmd,
}

impl<'a> Call<'a> {
    fn new(script: &'a LuaScript, keys: &[&str], arguments: &[&str]) -> Self {
        let mut by_hash = redis::cmd("EVALSHA");
        by_hash.arg(script.hash()).arg(keys.len()).arg(keys).arg(arguments);
        Self { script, by_hash }
    }

    /// A question for a lock. `listed`: it waits if the lock is taken. `counts`: the user may ask how
    /// many subscribe to a channel.
    pub(super) fn ask(
        scripts: &'a Scripts,
        question: &Question,
        listed: bool,
        counts: bool,
    ) -> Self {
        let Question { key, token, instead_of, aside, expire, block, listed: on_list, .. } =
            question;
        let (fence, waiting) = (key.fence_key(), key.waiting_key());
        let (token, lease, block) = (token.to_string(), milliseconds(*expire), block.to_string());
        let waits = if listed { "1" } else { "0" };
        let keys = [key.as_str(), &fence, &waiting];
        match instead_of {
            Some(old) => {
                let (old, claim) = (old.to_string(), claim(*expire, *aside));
                let arguments = [&*token, &lease, &block, waits, &old, &claim, COUNTS];
                Self::new(&scripts.pass, &keys, without_counts(&arguments, counts))
            }
            None if *on_list => {
                Self::new(&scripts.acquire, &keys, &[&token, &lease, &block, waits, "1"])
            }
            None => Self::new(&scripts.acquire, &keys, &[&token, &lease, &block, waits]),
        }
    }

    /// The extension of leases.
    pub(super) fn extend(scripts: &'a Scripts, leases: &[Extension]) -> Self {
        let keys: Vec<_> = leases.iter().map(|lease| lease.key.as_str()).collect();
        let arguments: Vec<_> = leases
            .iter()
            .flat_map(|lease| [lease.token.to_string(), milliseconds(lease.expire)])
            .collect();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        Self::new(&scripts.extend, &keys, &arguments)
    }

    /// The end of a lease or a wait. `counts` as in [`Call::ask`].
    pub(super) fn release(
        scripts: &'a Scripts,
        key: &LockKey,
        ended: &Ended,
        counts: bool,
    ) -> Self {
        let Ended { token, expire, aside, .. } = ended;
        let (waiting, token, claim) =
            (key.waiting_key(), token.to_string(), claim(*expire, *aside));
        let arguments = [&*token, &claim, COUNTS];
        let arguments = without_counts(&arguments, counts);
        Self::new(&scripts.release, &[key.as_str(), &waiting], arguments)
    }

    /// The record of a value beside a lock.
    pub(super) fn record(
        scripts: &'a Scripts,
        name: &RecordName,
        token: &OwnerToken,
        text: &str,
        lasts: Duration,
    ) -> Self {
        let (result, token) = (name.in_redis(), token.to_string());
        let arguments = [&*token, &milliseconds(lasts), text];
        Self::new(&scripts.record, &[name.key.as_str(), &result], &arguments)
    }

    /// The value recorded beside a lock, and how long it lasts.
    pub(super) fn recorded(scripts: &'a Scripts, name: &RecordName) -> Self {
        Self::new(&scripts.recorded, &[&name.in_redis()], &[])
    }

    /// The call by hash, which a server that does not know the script refuses.
    pub(super) fn by_hash(&self) -> &Cmd {
        &self.by_hash
    }

    /// The call that carries the script, and makes it known.
    pub(super) fn in_full(&self) -> Cmd {
        let mut in_full = redis::cmd("EVAL");
        in_full.arg(self.script.source());
        for argument in self.by_hash.args_iter().skip(2) {
            if let redis::Arg::Simple(argument) = argument {
                in_full.arg(argument);
            }
        }
        in_full
    }
}

/// The answer to [`Call::ask`].
pub(super) fn read_reply(value: &Value, sent_at: Moment) -> Option<Reply> {
    let reply = match value {
        Value::Array(reply) => &reply[..],
        only => {
            let number = number(only)?;
            let numbers = Numbers::new(number, number);
            return Some(Reply::Got { numbers, sent_at, others: false });
        }
    };
    match reply {
        [Value::Int(1), low, high, Value::Int(others)] => {
            let numbers = Numbers::new(number(low)?, number(high)?);
            Some(Reply::Got { numbers, sent_at, others: *others > 0 })
        }
        [Value::Int(0), Value::Int(remaining), Value::Int(ours), Value::Int(listed)] => {
            let remaining = u64::try_from(*remaining).ok().map(Duration::from_millis);
            Some(Reply::Busy { remaining, ours: *ours == 1, listed: *listed == 1 })
        }
        [Value::Int(2), Value::Int(listed), Value::Int(_)] => {
            Some(Reply::Free { listed: *listed == 1 })
        }
        _ => None,
    }
}

/// The answer to [`Call::extend`] of so many leases.
pub(super) fn read_extended(value: &Value, leases: usize) -> Option<Vec<Extended>> {
    let extended = |value: &Value| match value {
        Value::Int(1) => Some(Extended::Kept),
        Value::Int(0) => Some(Extended::Gone),
        _ => None,
    };
    match value {
        Value::Array(kept) if kept.len() == leases => kept.iter().map(extended).collect(),
        _ => None,
    }
}

/// The answer to [`Call::release`]: whether the lock was the owner's.
pub(super) fn read_released(value: &Value) -> Option<bool> {
    match value {
        Value::Int(1 | 2) => Some(true),
        Value::Int(0) => Some(false),
        _ => None,
    }
}

/// Whether an answer to [`Call::ask`] or [`Call::release`] says that the user may not look who waits,
/// or not tell them.
pub(super) fn tells_of_refusal(value: &Value) -> bool {
    match value {
        Value::Int(2) => true,
        Value::Array(reply) => matches!(
            &reply[..],
            [Value::Int(1), _, _, Value::Int(-1)] | [Value::Int(2), _, Value::Int(1)]
        ),
        _ => false,
    }
}

/// The last argument of the scripts that grant, left out where the user may not count subscribers.
const COUNTS: &str = "1";

fn without_counts<'a>(arguments: &'a [&'a str], counts: bool) -> &'a [&'a str] {
    &arguments[..arguments.len() - usize::from(!counts)]
}

fn number(value: &Value) -> Option<i64> {
    let Value::BulkString(text) = value else { return None };
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Rounds up: a lease is never shorter on the server than its holder believes.
fn milliseconds(time: Duration) -> String {
    time.as_nanos().div_ceil(1_000_000).to_string()
}

/// How long the claim of a grant lasts that the end of such a lease makes. `aside`: it makes none.
fn claim(expire: Duration, aside: bool) -> String {
    milliseconds(if aside { Duration::ZERO } else { expire.min(CLAIM) })
}
