//! The lock's options as tokens: constants, with limits checked as early as possible.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens as _, quote_spanned};
use syn::{ExprPath, LitBool, spanned::Spanned as _};

use crate::{
    args::{Args, OnLostArg, ReleaseArg, Time},
    crate_path::CratePath,
};

/// The `LockOptions` of the written arguments. The manager completes the others.
pub(crate) fn options(args: &Args, crate_path: &CratePath) -> TokenStream {
    let site = Span::mixed_site();
    let cache_lock = crate_path.at(site);
    let mut setters = TokenStream::new();
    let mut set = |setter: &str, value: TokenStream| {
        let setter = Ident::new(setter, site);
        setters.extend(quote_spanned!(site=> .#setter(#value)));
    };
    if args.timeout.is_none() && args.skip_if_locked.is_some() {
        let private = crate_path.private(site);
        set("timeout", quote_spanned!(site=> #private::millis(0)));
    }
    let mut check = Check::Done;
    for duration in durations(args, crate_path) {
        set(duration.name, duration.value);
        check = check.max(duration.check);
    }
    if let Some(renew) = &args.renew {
        set("renew", renew.to_token_stream());
    }
    if let Some(on_lost) = args.on_lost {
        let variant = match on_lost {
            OnLostArg::Cancel => "Cancel",
            OnLostArg::Finish => "Finish",
        };
        let variant = Ident::new(variant, site);
        set("on_lost", quote_spanned!(site=> #cache_lock::OnLost::#variant));
    }
    if let Some(release) = args.release {
        let background = LitBool::new(release == ReleaseArg::Background, site);
        set("background_release", background.to_token_stream());
    }
    let options = quote_spanned!(site=> #cache_lock::LockOptions::new() #setters);
    // Both forms are constants, which take no space in the future.
    if check == Check::Early {
        quote_spanned! {site=>
            {
                const __OPTIONS: #cache_lock::LockOptions = #options;
                &__OPTIONS
            }
        }
    } else {
        quote_spanned!(site=> &const { #options })
    }
}

/// The written durations. Constants go through a check, since only rustc can read them.
fn durations(args: &Args, crate_path: &CratePath) -> Vec<DurationSetter> {
    let Args { timeout, expire, max_hold, .. } = args;
    let mut durations = Vec::new();
    let mut push = |name, value, times: &[&Time]| {
        durations.push(DurationSetter { name, value, check: Check::of(times) });
    };
    if let Some(timeout) = timeout {
        push("timeout", duration(timeout, crate_path), &[timeout]);
    }
    if let Some(expire) = expire {
        push("expire", checked("check_expire", expire, &[], crate_path), &[expire]);
    }
    match (max_hold, expire) {
        (Some(max_hold), Some(expire)) => {
            push(
                "max_hold",
                checked("check_max_hold", max_hold, &[expire], crate_path),
                &[max_hold, expire],
            );
        }
        (Some(max_hold), None) => push("max_hold", duration(max_hold, crate_path), &[max_hold]),
        (None, _) => {}
    }
    durations
}

/// A duration as tokens, with a check if a constant is involved. Literals are already checked.
fn checked(check: &str, time: &Time, others: &[&Time], crate_path: &CratePath) -> TokenStream {
    let value = duration(time, crate_path);
    let path = others.iter().copied().chain([time]).find_map(|time| match time {
        Time::Const(path) => Some(path),
        Time::Millis(..) => None,
    });
    let Some(path) = path else { return value };
    let span = path.span().resolved_at(Span::mixed_site());
    let others = others.iter().map(|other| duration(other, crate_path));
    let private = crate_path.private(span);
    let check = Ident::new(check, span);
    quote_spanned!(span=> #private::#check(#value #(, #others)*))
}

/// A constant prefix as tokens, with a check that it is not empty.
pub(crate) fn prefix(path: &ExprPath, crate_path: &CratePath) -> TokenStream {
    let site = Span::mixed_site();
    let span = path.span().resolved_at(site);
    let private = crate_path.private(span);
    let checked = quote_spanned!(span=> #private::check_prefix(#path));
    if may_be_generic(path) {
        return quote_spanned!(site=> const { #checked });
    }
    let private = crate_path.private(site);
    quote_spanned! {site=>
        {
            const __PREFIX: &#private::str = #checked;
            __PREFIX
        }
    }
}

/// The setter call for a duration.
struct DurationSetter {
    name: &'static str,
    value: TokenStream,
    check: Check,
}

/// The time at which the limits of a duration are checked, from the earliest to the latest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Check {
    /// At expansion: a literal.
    Done,
    /// In a `const` item, when the function is checked.
    Early,
    /// In `const { .. }`, when the function is compiled. A constant that depends on generic parameters
    /// is allowed only there.
    Late,
}

impl Check {
    fn of(times: &[&Time]) -> Self {
        let check = |time: &&Time| match time {
            Time::Const(path) if may_be_generic(path) => Self::Late,
            Time::Const(_) => Self::Early,
            Time::Millis(..) => Self::Done,
        };
        times.iter().map(check).max().unwrap_or(Self::Done)
    }
}

fn duration(time: &Time, crate_path: &CratePath) -> TokenStream {
    match time {
        Time::Millis(millis, span) => {
            let mut millis = Literal::u64_unsuffixed(*millis);
            millis.set_span(*span);
            let private = crate_path.private(Span::mixed_site());
            quote_spanned!(Span::mixed_site()=> #private::millis(#millis))
        }
        Time::Const(path) => path.to_token_stream(),
    }
}

/// Whether a constant may depend on a generic parameter of the function or of its `impl`. The
/// attribute does not see the `impl`, so the spelling decides: `Self::LEASE`,
/// `T::LEASE`, `<T as Timed>::LEASE`.
fn may_be_generic(path: &ExprPath) -> bool {
    let segments = &path.path.segments;
    path.qself.is_some()
        || path.path.leading_colon.is_none()
            && segments.len() > 1
            && segments[0].ident.to_string().starts_with(char::is_uppercase)
}
