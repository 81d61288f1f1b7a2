//! Calls of the scripts: what a request sends, and what its answer says.

use std::{fmt::Display, time::Duration};

use redis::{Cmd, RedisWrite, Value};

use super::{
    inbox::Rights,
    script::{LuaScript, Scripts},
};
use crate::{
    clock::Instant,
    fence::Numbers,
    key::LockKey,
    protocol::messages::{
        AcquireRequest, AcquireResponse, Extended, Extension, ReleaseRequest, RequestKind,
    },
};

/// How long a grant lasts that is not claimed: its manager may have been stopped.
const CLAIM: Duration = Duration::from_millis(500);

/// The room that all but the keys and tokens of a call take: its name, the hash, numbers.
const OVERHEAD: usize = 80;
/// The room that a name beside a key takes more than twice the key.
const SUFFIX: usize = 12;
/// A token's form and random part, and the host and process of most.
pub(super) const TOKEN: usize = 64;

/// A call of a script, or a plain command, to be sent as often as needed.
pub(super) struct Call<'a> {
    script: Option<&'a LuaScript>,
    command: Cmd,
}

impl<'a> Call<'a> {
    /// Begins a call with so many keys. `text`: the length of its keys and tokens, about. What follows is
    /// written in place.
    pub(super) fn new(script: &'a LuaScript, keys: usize, arguments: usize, text: usize) -> Self {
        let mut command = Cmd::with_capacity(3 + keys + arguments, OVERHEAD + text);
        command.arg("EVALSHA").arg(script.hash()).arg(keys);
        Self { script: Some(script), command }
    }

    #[cfg(all(feature = "serde", feature = "single-flight"))]
    pub(super) fn get(name: &str) -> Self {
        let mut command = redis::cmd("GET");
        command.arg(name);
        Self { script: None, command }
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.command.write_arg(text.as_bytes());
        self
    }

    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        self.command.arg(number);
        self
    }

    pub(super) fn written(&mut self, text: impl Display) -> &mut Self {
        self.command.write_arg_fmt(text);
        self
    }

    /// A request for a lock. `wait`: its token joins the waiting list if the lock is taken. A user without the
    /// right to read the record could not release it, so the script reads it first, as for a token on the
    /// list.
    pub(super) fn acquire(
        scripts: &'a Scripts,
        request: &AcquireRequest,
        wait: bool,
        rights: Rights,
    ) -> Self {
        let AcquireRequest { key, token, kind, expire, block, .. } = request;
        let old = kind.old();
        let script = if old.is_some() { &scripts.pass } else { &scripts.acquire };
        let tokens = 1 + usize::from(old.is_some());
        let mut call = Self::new(script, 3, 7, room(key, 2) + TOKEN * tokens);
        call.text(key.as_str()).written(key.fence_key()).written(key.waiting_key());
        call.written(token).number(milliseconds(*expire)).number((*block).into());
        call.number(wait.into());
        match kind {
            RequestKind::Pass(old) => {
                call.written(&old.token).number(claim(old)).counts(rights);
            }
            RequestKind::Again | RequestKind::Claim => {
                call.number(1);
            }
            RequestKind::New if !rights.reads => {
                call.number(1);
            }
            RequestKind::New => {}
        }
        call
    }

    /// The extension of leases.
    pub(super) fn extend(scripts: &'a Scripts, leases: &[Extension]) -> Self {
        let text = leases.iter().map(|lease| room(&lease.key, 0) + TOKEN + 16).sum();
        let mut call = Self::new(&scripts.extend, leases.len(), 2 * leases.len(), text);
        for lease in leases {
            call.text(lease.key.as_str());
        }
        for lease in leases {
            call.written(&lease.token).number(milliseconds(lease.expire));
        }
        call
    }

    /// The end of a lease or a wait.
    pub(super) fn release(
        scripts: &'a Scripts,
        key: &LockKey,
        request: &ReleaseRequest,
        rights: Rights,
    ) -> Self {
        let mut call = Self::new(&scripts.release, 2, 3, room(key, 1) + TOKEN);
        call.text(key.as_str()).written(key.waiting_key());
        call.written(&request.token).number(claim(request)).counts(rights);
        call
    }

    /// The last argument of the scripts that grant, left out where the user may not count subscribers.
    fn counts(&mut self, rights: Rights) {
        if rights.counts {
            self.number(1);
        }
    }

    /// What is sent. A server that does not know the script refuses it, as it names it by its hash.
    pub(super) fn command(&self) -> &Cmd {
        &self.command
    }

    /// The call that carries the script, and makes it known. `None` for a plain command.
    pub(super) fn in_full(&self) -> Option<Cmd> {
        let mut in_full = redis::cmd("EVAL");
        in_full.arg(self.script?.source());
        for argument in self.command.args_iter().skip(2) {
            if let redis::Arg::Simple(argument) = argument {
                in_full.arg(argument);
            }
        }
        Some(in_full)
    }
}

/// The answer to [`Call::acquire`].
pub(super) fn read_acquired(value: &Value, sent_at: Instant) -> Option<AcquireResponse> {
    let reply = match value {
        Value::Array(reply) => &reply[..],
        only => {
            let number = number(only)?;
            let numbers = Numbers::new(number, number);
            return Some(AcquireResponse::Got { numbers, sent_at, others: false });
        }
    };
    match reply {
        [Value::Int(1), low, high, Value::Int(others)] => {
            let numbers = Numbers::new(number(low)?, number(high)?);
            Some(AcquireResponse::Got { numbers, sent_at, others: *others > 0 })
        }
        [Value::Int(0), Value::Int(remaining), Value::Int(ours), Value::Int(listed)] => {
            let remaining = u64::try_from(*remaining).ok().map(Duration::from_millis);
            Some(AcquireResponse::Busy { remaining, ours: *ours == 1, listed: *listed == 1 })
        }
        [Value::Int(2), Value::Int(listed), Value::Int(_)] => {
            Some(AcquireResponse::Free { listed: *listed == 1 })
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

/// Whether an answer to [`Call::acquire`] or [`Call::release`] says that the user may not read the
/// waiting list, or not publish.
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

/// About what a key and so many names beside it take.
pub(super) fn room(key: &LockKey, beside: usize) -> usize {
    (1 + 2 * beside) * key.as_str().len() + beside * SUFFIX
}

fn number(value: &Value) -> Option<i64> {
    let Value::BulkString(text) = value else { return None };
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Rounds up: a lease is never shorter on the server than its holder believes.
pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// How long the claim of a grant lasts that a release makes. A yield makes none: 0.
fn claim(release: &ReleaseRequest) -> u64 {
    milliseconds(if release.yields { Duration::ZERO } else { release.expire.min(CLAIM) })
}
