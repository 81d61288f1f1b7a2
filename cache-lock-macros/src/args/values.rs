//! Readers for the values of arguments.

use proc_macro2::Span;
use quote::ToTokens as _;
use syn::{
    Expr, ExprLit, Ident, Lit, LitBool, LitStr, Path, Token,
    ext::IdentExt as _,
    parse::{ParseStream, Parser as _},
    spanned::Spanned as _,
};

use super::{OrElse, Prefix, Template, Time};
use crate::{
    duration,
    errors::Errors,
    key::{self, FieldPath, unspaced},
    suggest,
};

const EXPIRE_MIN: u64 = 100;
const EXPIRE_MAX: u64 = 24 * 3_600_000;

/// A literal or a constant. A variable could differ between processes, so the fleet would not share
/// a lock; the spelling tells a constant from a variable.
pub(super) fn prefix(input: ParseStream<'_>) -> syn::Result<Prefix> {
    if input.peek(LitStr) {
        let literal: LitStr = input.parse()?;
        if literal.value().is_empty() {
            return Err(syn::Error::new(literal.span(), "`prefix` must not be empty"));
        }
        if let Some(at) = literal.value().find(['{', '}']) {
            return Err(syn::Error::new(literal.span(), braces_in_prefix(&literal.value(), at)));
        }
        return Ok(Prefix::Literal(literal));
    }
    let expected = "expected string literal, or the path of a `const`, such as `ORDERS_PREFIX`";
    match expression(input, expected)? {
        Expr::Path(path) if is_constant(&path.path) => Ok(Prefix::Const(path)),
        Expr::Path(path) if path.path.get_ident().is_some() => {
            let name = path.path.to_token_stream();
            Err(syn::Error::new_spanned(
                path,
                format!(
                    "{expected}; write `prefix = \"{name}\"`, or `key = \"{{{name}}}\"` for a value"
                ),
            ))
        }
        other => Err(syn::Error::new_spanned(other, expected)),
    }
}

/// The error for braces in a prefix; splits the text into a prefix and a key. `at` is the first brace.
fn braces_in_prefix(prefix: &str, at: usize) -> String {
    let start = prefix[..at].trim_end_matches(':');
    let rest = prefix[at..].replace(['{', '}'], "");
    let (tag, end) = rest.split_once(':').unwrap_or((&rest, ""));
    let colon = if end.is_empty() { "" } else { ":" };
    let (start, tag) =
        (if start.is_empty() { "orders" } else { start }, if tag.is_empty() { "id" } else { tag });
    format!(
        "`prefix` is the same text in every call and takes no braces; write `prefix = \"{start}\"` and `key = \"{{{tag}}}{colon}{end}\"` for the value of a parameter, or `key = \"{{{{{tag}}}}}{colon}{end}\"` for a Redis hash tag"
    )
}

pub(super) fn is_constant(path: &Path) -> bool {
    path.segments.last().is_some_and(|segment| {
        segment.arguments.is_none() && key::is_constant_name(&segment.ident.unraw().to_string())
    })
}

pub(super) fn template_literal(input: ParseStream<'_>) -> syn::Result<LitStr> {
    if input.peek(LitStr) {
        return input.parse();
    }
    let expected = "expected string literal, such as `key = \"{id}\"`";
    let written = expression(input, expected)?;
    let message = match field_path(&written) {
        Some(path) => format!("expected string literal; write `key = \"{{{path}}}\"`"),
        None => match formatted(&written) {
            Some(template) => format!(
                "`key` is a template itself; write `key = {template}`, with the name of a parameter in each pair of braces"
            ),
            None => expected.to_owned(),
        },
    };
    Err(syn::Error::new_spanned(written, message))
}

/// The field path of a key without quotes and braces, such as `key = user.id`.
fn field_path(expr: &Expr) -> Option<FieldPath> {
    match expr {
        Expr::Reference(reference) => field_path(&reference.expr),
        Expr::Path(_) | Expr::Field(_) => key::parse_field_path(&unspaced(expr.to_token_stream())),
        _ => None,
    }
}

/// The literal of a `format!`.
fn formatted(expr: &Expr) -> Option<proc_macro2::Literal> {
    let Expr::Macro(expr) = expr else { return None };
    if expr.mac.path.segments.last().is_none_or(|last| last.ident != "format") {
        return None;
    }
    let first = |input: ParseStream<'_>| {
        let literal = input.parse::<LitStr>()?;
        input.parse::<proc_macro2::TokenStream>()?;
        Ok(literal.token())
    };
    first.parse2(expr.mac.tokens.clone()).ok()
}

pub(super) fn template(literal: &LitStr, errors: &mut Errors) -> Template {
    let (segments, messages) = key::parse_template(&literal.value());
    let is_whole = messages.is_empty();
    for message in messages {
        errors.at(literal.span(), message);
    }
    Template { span: literal.span(), segments, is_whole }
}

pub(super) fn time(name: &'static str, input: ParseStream<'_>) -> syn::Result<Time> {
    let expected = || {
        format!(
            "expected a duration: a string such as \"2s\", an integer for milliseconds, or the path of a `const` of type `Duration`; write `{name} = \"2s\"`"
        )
    };
    // `-` comes before the literals, since syn reads `-1` as a literal.
    if let Some(minus) = input.parse::<Option<Token![-]>>()? {
        return Err(syn::Error::new(minus.span, duration::negative(name)));
    }
    let span = input.span();
    match input.parse() {
        Ok(Expr::Lit(literal)) => literal_time(name, &literal.lit, expected),
        Ok(Expr::Path(path)) => Ok(Time::Const(path)),
        Ok(other) => Err(syn::Error::new_spanned(other, expected())),
        Err(_) => Err(syn::Error::new(span, expected())),
    }
}

/// A bare integer below this limit is refused, since the user probably means seconds. 0 is the same
/// in any unit.
const BARE_MIN: u64 = 100;

fn literal_time(
    name: &'static str,
    literal: &Lit,
    expected: impl Fn() -> String,
) -> syn::Result<Time> {
    let millis = match literal {
        Lit::Str(text) => duration::parse(name, &text.value()),
        Lit::Int(int) if int.suffix().is_empty() => match int.base10_parse() {
            Ok(millis @ 1..BARE_MIN) => Err(duration::bare(name, millis)),
            Ok(millis) => Ok(millis),
            Err(_) => Err(duration::too_long(name)),
        },
        Lit::Int(int) => {
            Err(format!("a duration with a unit needs quotes; write `{name} = \"{int}\"`"))
        }
        Lit::Float(_) => Err(format!(
            "a float is not a duration; write a string such as `{name} = \"2500ms\"`, or an integer for milliseconds"
        )),
        _ => Err(expected()),
    };
    match millis {
        Ok(millis) => Ok(Time::Millis(millis, literal.span())),
        Err(message) => Err(syn::Error::new(literal.span(), message)),
    }
}

pub(super) fn check_expire(millis: u64, span: Span, errors: &mut Errors) {
    let shown = duration::display(millis);
    if millis == 0 {
        errors.at(span, "`expire` must be greater than zero");
    } else if millis < EXPIRE_MIN {
        errors.at(
            span,
            format!(
                "`expire` is {shown}; it must be at least 100ms so that the lock outlives a Redis round trip"
            ),
        );
    } else if millis > EXPIRE_MAX {
        errors.at(
            span,
            format!("`expire` is {shown}; it must be at most 24h, since a crashed holder blocks the key that long"),
        );
    }
}

pub(super) fn boolean(input: ParseStream<'_>) -> syn::Result<LitBool> {
    input.parse().map_err(|error| syn::Error::new(error.span(), "expected `true` or `false`"))
}

pub(super) fn binding(input: ParseStream<'_>) -> syn::Result<Ident> {
    input.parse().map_err(|error| {
        syn::Error::new(error.span(), "expected a name for the lock guard, as in `bind = lock`")
    })
}

/// A string literal with either of two words.
pub(super) fn choice<T>(
    name: &str,
    input: ParseStream<'_>,
    choices: [(&str, T); 2],
) -> syn::Result<T> {
    let words = [choices[0].0, choices[1].0];
    let expected = format!("expected {:?} or {:?}", words[0], words[1]);
    let literal: LitStr =
        input.parse().map_err(|error| syn::Error::new(error.span(), &expected))?;
    let text = literal.value();
    if let Some((_, choice)) = choices.into_iter().find(|(word, _)| *word == text) {
        return Ok(choice);
    }
    let help = match suggest::nearest(&text, words) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => expected,
    };
    Err(syn::Error::new(literal.span(), format!("unknown `{name}` value {text:?}; {help}")))
}

pub(super) fn or_else(input: ParseStream<'_>) -> syn::Result<OrElse> {
    let expected = "`or_else` must be the path of a function `fn(LockError) -> ..`, or a closure with one parameter, as in `or_else = |error| ..`";
    match expression(input, expected)? {
        Expr::Path(path) => Ok(OrElse::Path(path)),
        Expr::Closure(closure) if closure.asyncness.is_some() => Err(syn::Error::new(
            closure.asyncness.span(),
            "an `or_else` closure cannot be `async`, since it returns the function's return type; remove `async`",
        )),
        Expr::Closure(closure) if closure.inputs.len() == 1 => Ok(OrElse::Closure(closure)),
        Expr::Call(call) if matches!(*call.func, Expr::Path(_)) && call.args.is_empty() => {
            let name = unspaced(call.func.to_token_stream());
            Err(syn::Error::new_spanned(
                call,
                format!(
                    "`or_else` takes the path of a function, not a call; write `or_else = {name}`"
                ),
            ))
        }
        other => {
            Err(quoted("or_else", &other)
                .unwrap_or_else(|| syn::Error::new_spanned(other, expected)))
        }
    }
}

pub(super) fn when(input: ParseStream<'_>) -> syn::Result<Expr> {
    let expected = "`when` must be a `bool` expression, such as `when = amount > 0`";
    let when = expression(input, expected)?;
    quoted("when", &when).map_or(Ok(when), Err)
}

pub(super) fn with(input: ParseStream<'_>) -> syn::Result<Expr> {
    let expected =
        "`with` must be an expression for the `LockManager`, such as `with = self.locks`";
    let with = expression(input, expected)?;
    quoted("with", &with).map_or(Ok(with), Err)
}

/// The error for an expression in quotes.
fn quoted(name: &str, expr: &Expr) -> Option<syn::Error> {
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = expr else { return None };
    let message = match syn::parse_str::<Expr>(&text.value()) {
        Ok(_) => format!("`{name}` takes no quotes; write `{name} = {}`", text.value()),
        Err(_) => format!("`{name}` takes an expression; write it without quotes"),
    };
    Some(syn::Error::new(text.span(), message))
}

fn expression(input: ParseStream<'_>, expected: &str) -> syn::Result<Expr> {
    let span = input.span();
    input.parse().map_err(|error| {
        // After the last token, only the attribute has a span.
        let span = if input.is_empty() { span } else { error.span() };
        syn::Error::new(span, expected)
    })
}

pub(super) fn crate_path(input: ParseStream<'_>) -> syn::Result<Path> {
    let expected = "`crate` must be the path of the cache-lock crate, without quotes, as in `crate = my_crate::cache_lock`";
    let span = input.span();
    input.call(Path::parse_mod_style).map_err(|_| syn::Error::new(span, expected))
}
