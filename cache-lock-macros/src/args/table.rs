//! The table of arguments: each row holds the name, an example and the reader of an argument.

use proc_macro2::Span;
use syn::parse::ParseStream;

use super::{Args, OnLostArg, ReleaseArg, Time, values};
use crate::errors::Errors;

/// A row of the table.
pub(super) struct Argument {
    pub(super) name: &'static str,
    /// An example for error texts.
    pub(super) example: &'static str,
    /// Names from other lock libraries that the edit distance does not match.
    pub(super) elsewhere: &'static [&'static str],
    pub(super) read: Read,
}

/// The reader of an argument, by the tokens after its name.
pub(super) enum Read {
    /// No tokens.
    Flag(fn(&mut Args, Span)),
    /// `= value`
    Value(ReadValue),
}

/// Reads the value of the argument with this name.
type ReadValue = fn(&mut Args, &'static str, ParseStream<'_>, &mut Errors) -> syn::Result<()>;

const fn value(
    name: &'static str,
    example: &'static str,
    elsewhere: &'static [&'static str],
    read: ReadValue,
) -> Argument {
    Argument { name, example, elsewhere, read: Read::Value(read) }
}

/// Every argument, in the order of the documentation.
pub(super) const ARGUMENTS: [Argument; 14] = [
    value(
        "prefix",
        "prefix = \"orders\"",
        &["lockedPrefix", "namespace", "name", "resource"],
        |args, _, input, _| {
            args.prefix = Some(values::prefix(input)?);
            Ok(())
        },
    ),
    value("key", "key = \"{id}\"", &["id"], |args, _, input, errors| {
        args.key = Some(values::template(&values::template_literal(input)?, errors));
        Ok(())
    }),
    value(
        "timeout",
        "timeout = \"2s\"",
        &["wait", "waitTime", "wait_time", "acquire_timeout", "blocking", "retries"],
        |args, name, input, _| {
            args.timeout = Some(values::time(name, input)?);
            Ok(())
        },
    ),
    value(
        "expire",
        "expire = \"10s\"",
        &["expireTime", "lease", "lease_time", "leaseTime", "duration", "ttl"],
        |args, name, input, errors| {
            let time = values::time(name, input)?;
            if let Time::Millis(millis, span) = time {
                values::check_expire(millis, span, errors);
            }
            args.expire = Some(time);
            Ok(())
        },
    ),
    value("renew", "renew = false", &[], |args, _, input, _| {
        args.renew = Some(values::boolean(input)?);
        Ok(())
    }),
    value("max_hold", "max_hold = \"1m\"", &[], |args, name, input, _| {
        args.max_hold = Some(values::time(name, input)?);
        Ok(())
    }),
    value("bind", "bind = lock", &["guard", "as"], |args, _, input, _| {
        args.bind = Some(values::binding(input)?);
        Ok(())
    }),
    value("or_else", "or_else = on_lock_error", &["on_error", "fallback"], |args, _, input, _| {
        args.or_else = Some(values::or_else(input)?);
        Ok(())
    }),
    Argument {
        name: "skip_if_locked",
        example: "skip_if_locked",
        elsewhere: &["fail_fast", "try_lock"],
        read: Read::Flag(|args, span| args.skip_if_locked = Some(span)),
    },
    value("on_lost", "on_lost = \"finish\"", &[], |args, name, input, _| {
        let choices = [("cancel", OnLostArg::Cancel), ("finish", OnLostArg::Finish)];
        args.on_lost = Some(values::choice(name, input, choices)?);
        Ok(())
    }),
    value(
        "release",
        "release = \"background\"",
        &["background_release"],
        |args, name, input, _| {
            let choices = [("background", ReleaseArg::Background), ("wait", ReleaseArg::Wait)];
            args.release = Some(values::choice(name, input, choices)?);
            Ok(())
        },
    ),
    value("when", "when = amount > 0", &["condition", "if", "unless"], |args, _, input, _| {
        args.when = Some(values::when(input)?);
        Ok(())
    }),
    value("with", "with = self.locks", &["manager", "locks", "url"], |args, _, input, _| {
        args.with = Some(values::with(input)?);
        Ok(())
    }),
    value("crate", "crate = cache_lock", &[], |args, _, input, _| {
        args.krate = Some(values::crate_path(input)?);
        Ok(())
    }),
];
