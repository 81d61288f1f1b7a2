//! The arguments of the attribute: one row has the name, the spelling and the reader of an argument.

use proc_macro2::Span;
use syn::parse::ParseStream;

use super::{Args, OnLostArg, ReleaseArg, Time, values};
use crate::errors::Errors;

/// A row of the table.
pub(super) struct Argument {
    pub(super) name: &'static str,
    /// How it is written, for the errors.
    pub(super) example: &'static str,
    pub(super) read: Read,
}

/// What stands behind the name.
pub(super) enum Read {
    /// Nothing.
    Flag(fn(&mut Args, Span)),
    /// `= value`
    Value(fn(&mut Args, ParseStream<'_>, &mut Errors) -> syn::Result<()>),
}

const fn value(
    name: &'static str,
    example: &'static str,
    read: fn(&mut Args, ParseStream<'_>, &mut Errors) -> syn::Result<()>,
) -> Argument {
    Argument { name, example, read: Read::Value(read) }
}

/// Every argument, in the order of the documentation.
pub(super) const ARGUMENTS: [Argument; 14] = [
    value("prefix", "prefix = \"orders\"", |args, input, _| {
        args.prefix = Some(values::prefix(input)?);
        Ok(())
    }),
    value("key", "key = \"{id}\"", |args, input, errors| {
        args.key = Some(values::template(&values::template_literal(input)?, errors));
        Ok(())
    }),
    value("timeout", "timeout = \"2s\"", |args, input, _| {
        args.timeout = Some(values::time("timeout", input)?);
        Ok(())
    }),
    value("expire", "expire = \"10s\"", |args, input, errors| {
        let time = values::time("expire", input)?;
        if let Time::Millis(millis, span) = time {
            values::check_expire(millis, span, errors);
        }
        args.expire = Some(time);
        Ok(())
    }),
    value("renew", "renew = false", |args, input, _| {
        args.renew = Some(values::boolean(input)?);
        Ok(())
    }),
    value("max_hold", "max_hold = \"1m\"", |args, input, _| {
        args.max_hold = Some(values::time("max_hold", input)?);
        Ok(())
    }),
    value("bind", "bind = lock", |args, input, _| {
        args.bind = Some(values::binding(input)?);
        Ok(())
    }),
    value("or_else", "or_else = on_lock_error", |args, input, _| {
        args.or_else = Some(values::or_else(input)?);
        Ok(())
    }),
    Argument {
        name: "skip_if_locked",
        example: "skip_if_locked",
        read: Read::Flag(|args, span| args.skip_if_locked = Some(span)),
    },
    value("on_lost", "on_lost = \"finish\"", |args, input, _| {
        let choices = [("cancel", OnLostArg::Cancel), ("finish", OnLostArg::Finish)];
        args.on_lost = Some(values::choice("on_lost", input, choices)?);
        Ok(())
    }),
    value("release", "release = \"background\"", |args, input, _| {
        let choices = [("background", ReleaseArg::Background), ("wait", ReleaseArg::Wait)];
        args.release = Some(values::choice("release", input, choices)?);
        Ok(())
    }),
    value("when", "when = amount > 0", |args, input, _| {
        args.when = Some(values::when(input)?);
        Ok(())
    }),
    value("with", "with = self.locks", |args, input, _| {
        args.with = Some(values::with(input)?);
        Ok(())
    }),
    value("crate", "crate = cache_lock", |args, input, _| {
        args.krate = Some(values::crate_path(input)?);
        Ok(())
    }),
];

/// What other lock libraries call an argument, where the spelling alone does not give it away.
pub(super) const ELSEWHERE: [(&str, &str); 30] = [
    ("lockedPrefix", "prefix"),
    ("namespace", "prefix"),
    ("name", "prefix"),
    ("resource", "prefix"),
    ("id", "key"),
    ("expireTime", "expire"),
    ("lease", "expire"),
    ("lease_time", "expire"),
    ("leaseTime", "expire"),
    ("duration", "expire"),
    ("ttl", "expire"),
    ("wait", "timeout"),
    ("waitTime", "timeout"),
    ("wait_time", "timeout"),
    ("acquire_timeout", "timeout"),
    ("blocking", "timeout"),
    ("retries", "timeout"),
    ("guard", "bind"),
    ("as", "bind"),
    ("on_error", "or_else"),
    ("fallback", "or_else"),
    ("fail_fast", "skip_if_locked"),
    ("try_lock", "skip_if_locked"),
    ("condition", "when"),
    ("if", "when"),
    ("unless", "when"),
    ("manager", "with"),
    ("locks", "with"),
    ("url", "with"),
    ("background_release", "release"),
];
