//! The arguments of the attribute, as written: `prefix = "room", key = "{id}", timeout = "2s"`.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{
    Expr, ExprClosure, ExprPath, Ident, Lit, LitBool, LitStr, Path, Token,
    ext::IdentExt as _,
    parse::{ParseStream, Parser as _},
    spanned::Spanned as _,
};

use crate::{
    duration,
    errors::Errors,
    key::{self, Place, Segment, unspaced},
    suggest,
};

/// Every argument, with how it is written. In the order of the documentation.
const ARGUMENTS: [(&str, &str); 14] = [
    ("prefix", "prefix = \"orders\""),
    ("key", "key = \"{id}\""),
    ("timeout", "timeout = \"2s\""),
    ("expire", "expire = \"10s\""),
    ("renew", "renew = false"),
    ("max_hold", "max_hold = \"1m\""),
    ("bind", "bind = lock"),
    ("or_else", "or_else = on_lock_error"),
    ("skip_if_locked", "skip_if_locked"),
    ("on_lost", "on_lost = \"finish\""),
    ("release", "release = \"background\""),
    ("when", "when = amount > 0"),
    ("with", "with = self.locks"),
    ("crate", "crate = cache_lock"),
];

/// What other lock libraries call an argument, where the spelling alone does not give it away.
const ELSEWHERE: [(&str, &str); 9] = [
    ("lockedPrefix", "prefix"),
    ("namespace", "prefix"),
    ("expireTime", "expire"),
    ("lease", "expire"),
    ("ttl", "expire"),
    ("wait", "timeout"),
    ("waitTime", "timeout"),
    ("manager", "with"),
    ("background_release", "release"),
];

const EXPIRE_MIN: u64 = 100;
const EXPIRE_MAX: u64 = 24 * 3_600_000;

#[derive(Default)]
pub(crate) struct Args {
    pub(crate) prefix: Option<Prefix>,
    pub(crate) key: Option<Template>,
    pub(crate) timeout: Option<Time>,
    pub(crate) expire: Option<Time>,
    pub(crate) renew: Option<LitBool>,
    pub(crate) max_hold: Option<Time>,
    pub(crate) bind: Option<Ident>,
    pub(crate) or_else: Option<OrElse>,
    pub(crate) skip_if_locked: Option<Span>,
    pub(crate) on_lost: Option<OnLost>,
    pub(crate) release: Option<Release>,
    pub(crate) when: Option<Expr>,
    pub(crate) with: Option<Expr>,
    pub(crate) krate: Option<Path>,
    /// The argument names in the order of their appearance, wrong ones included.
    seen: Vec<String>,
}

pub(crate) enum Prefix {
    Literal(LitStr),
    Const(ExprPath),
}

/// `key = ".."`, and what it reads as.
pub(crate) struct Template {
    pub(crate) span: Span,
    pub(crate) segments: Vec<Segment>,
}

pub(crate) enum Time {
    Millis(u64, Span),
    Const(ExprPath),
}

pub(crate) enum OrElse {
    Path(ExprPath),
    Closure(ExprClosure),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnLost {
    Cancel,
    Finish,
}

/// Whether the caller waits for the reply to the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    Background,
    Wait,
}

impl Args {
    /// Reads all arguments. One that cannot be read is reported and skipped.
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self::default();
        let parser = |input: ParseStream<'_>| {
            while !input.is_empty() {
                if let Err(error) = args.argument(input, errors) {
                    errors.push(error);
                    skip_to_comma(input);
                }
                if !input.is_empty() && input.parse::<Option<Token![,]>>()?.is_none() {
                    errors
                        .at(input.span(), "expected `,` between the arguments of `#[cache_lock]`");
                    skip_to_comma(input);
                    input.parse::<Option<Token![,]>>()?;
                }
            }
            Ok(())
        };
        if let Err(error) = parser.parse2(tokens) {
            errors.push(error);
        }
        args.check(errors);
        args
    }

    fn argument(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        if input.peek(Lit) {
            return Err(self.unnamed(&input.parse()?));
        }
        let name = input.call(Ident::parse_any).map_err(|error| {
            syn::Error::new(
                error.span(),
                "expected the name of an argument, as in `#[cache_lock(prefix = \"orders\", ..)]`",
            )
        })?;
        let text = name.unraw().to_string();
        let Some(&(known, example)) = ARGUMENTS.iter().find(|(known, _)| *known == text) else {
            return Err(self.unknown(&name));
        };
        if self.has_seen(known) {
            return Err(syn::Error::new(name.span(), format!("duplicate `{known}` argument")));
        }
        self.seen.push(text);

        if known == "skip_if_locked" {
            self.skip_if_locked = Some(name.span());
            return match input.parse::<Option<Token![=]>>()? {
                Some(eq) => Err(syn::Error::new(
                    eq.span,
                    "`skip_if_locked` takes no value; write `skip_if_locked`, or leave it out",
                )),
                None => Ok(()),
            };
        }
        if input.parse::<Option<Token![=]>>()?.is_none() || input.is_empty() {
            return Err(syn::Error::new(
                name.span(),
                format!("`{known}` needs a value; write `{example}`"),
            ));
        }
        match known {
            "prefix" => self.prefix = Some(prefix(input)?),
            "key" => self.key = Some(template(&template_literal(input)?, errors)),
            "timeout" => self.timeout = Some(time(known, input)?),
            "expire" => {
                let time = time(known, input)?;
                if let Time::Millis(millis, span) = time {
                    check_expire(millis, span, errors);
                }
                self.expire = Some(time);
            }
            "max_hold" => self.max_hold = Some(time(known, input)?),
            "renew" => self.renew = Some(boolean(input)?),
            "bind" => self.bind = Some(binding(input)?),
            "or_else" => self.or_else = Some(or_else(input)?),
            "on_lost" => {
                let choices = [("cancel", OnLost::Cancel), ("finish", OnLost::Finish)];
                self.on_lost = Some(choice(known, input, choices)?);
            }
            "release" => {
                let choices = [("background", Release::Background), ("wait", Release::Wait)];
                self.release = Some(choice(known, input, choices)?);
            }
            "when" => {
                self.when = Some(expression(
                    input,
                    "`when` must be a `bool` expression, such as `when = amount > 0`",
                )?);
            }
            "with" => {
                self.with = Some(expression(
                    input,
                    "`with` must be an expression for the `LockManager`, such as `with = self.locks`",
                )?);
            }
            _ => self.krate = Some(crate_path(input)?),
        }
        Ok(())
    }

    /// Whether a key is written, be it a wrong one.
    pub(crate) fn has_key(&self) -> bool {
        self.has_seen("key")
    }

    fn has_seen(&self, name: &str) -> bool {
        self.seen.iter().any(|seen| seen == name)
    }

    fn unnamed(&mut self, value: &Lit) -> syn::Error {
        let name = if self.has_seen("prefix") { "key" } else { "prefix" };
        let message = match value {
            Lit::Str(text) => {
                self.seen.push(name.to_owned());
                format!("arguments are named; write `{name} = {:?}`", text.value())
            }
            _ => "arguments are named, as in `timeout = \"2s\"`".to_owned(),
        };
        syn::Error::new(value.span(), message)
    }

    fn unknown(&mut self, name: &Ident) -> syn::Error {
        let text = name.unraw().to_string();
        let names = || ARGUMENTS.iter().map(|(name, _)| *name);
        let meant = ELSEWHERE
            .iter()
            .find(|(alias, _)| *alias == text)
            .map(|&(_, meant)| meant)
            .or_else(|| suggest::nearest(&text, names()));
        let help = match meant {
            Some(meant) => {
                // Else the misspelled argument would be reported as missing, too.
                self.seen.push(meant.to_owned());
                format!("did you mean `{meant}`?")
            }
            None => format!("expected one of {}", suggest::list(names())),
        };
        syn::Error::new(name.span(), format!("unknown argument `{text}`; {help}"))
    }

    /// What only shows when all arguments are known.
    fn check(&self, errors: &mut Errors) {
        if !self.has_seen("prefix") {
            errors.at(
                Span::call_site(),
                "missing required argument `prefix`, as in `#[cache_lock(prefix = \"orders\", ..)]`",
            );
        }
        let Some(max_hold) = &self.max_hold else { return };
        if let Some(renew) = self.renew.as_ref().filter(|renew| !renew.value) {
            errors.at(
                renew.span,
                "`max_hold` bounds renewal, and `renew = false` turns it off; remove one of the two",
            );
        } else if let (&Time::Millis(max_hold, span), Some(&Time::Millis(expire, _))) =
            (max_hold, self.expire.as_ref())
            && max_hold < expire
        {
            errors.at(
                span,
                format!(
                    "`max_hold` is {}; it must not be shorter than `expire`, which is {}",
                    duration::display(max_hold),
                    duration::display(expire)
                ),
            );
        }
    }
}

fn check_expire(millis: u64, span: Span, errors: &mut Errors) {
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

fn skip_to_comma(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        if input.parse::<TokenTree>().is_err() {
            return;
        }
    }
}

fn template_literal(input: ParseStream<'_>) -> syn::Result<LitStr> {
    if input.peek(LitStr) {
        return input.parse();
    }
    let expected = "expected string literal, such as `key = \"{id}\"`";
    let written = expression(input, expected)?;
    let message = match place(&written) {
        Some(place) => format!("expected string literal; write `key = \"{{{place}}}\"`"),
        None => expected.to_owned(),
    };
    Err(syn::Error::new_spanned(written, message))
}

/// The parameter or field that somebody named without quotes and braces.
fn place(expr: &Expr) -> Option<Place> {
    match expr {
        Expr::Reference(reference) => place(&reference.expr),
        Expr::Path(path) if is_constant(&path.path) => None,
        Expr::Path(_) | Expr::Field(_) => key::parse_place(&unspaced(expr.to_token_stream())),
        _ => None,
    }
}

/// A literal, or a constant. The spelling of constants tells them from a variable, which could not
/// name one lock for the whole fleet.
fn prefix(input: ParseStream<'_>) -> syn::Result<Prefix> {
    if input.peek(LitStr) {
        let literal: LitStr = input.parse()?;
        if literal.value().is_empty() {
            return Err(syn::Error::new(literal.span(), "`prefix` must not be empty"));
        }
        if literal.value().contains(['{', '}']) {
            return Err(syn::Error::new(
                literal.span(),
                "`prefix` is constant; move the placeholder to `key` (and a Redis hash tag, as `{{tag}}`)",
            ));
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

fn is_constant(path: &Path) -> bool {
    path.segments.last().is_some_and(|segment| {
        let name = segment.ident.unraw().to_string();
        segment.arguments.is_none()
            && name.contains(char::is_uppercase)
            && !name.contains(char::is_lowercase)
    })
}

fn template(literal: &LitStr, errors: &mut Errors) -> Template {
    let (segments, messages) = key::parse_template(&literal.value());
    for message in messages {
        errors.at(literal.span(), message);
    }
    Template { span: literal.span(), segments }
}

fn time(name: &str, input: ParseStream<'_>) -> syn::Result<Time> {
    let expected = || {
        format!(
            "expected a duration: a string such as \"2s\", an integer for milliseconds, or the path of a `const` of type `Duration`; write `{name} = \"2s\"`"
        )
    };
    // Before the literals, since `-1` is one to syn.
    if let Some(minus) = input.parse::<Option<Token![-]>>()? {
        return Err(syn::Error::new(minus.span, duration::negative(name)));
    }
    if !input.peek(Lit) {
        return match input.fork().parse::<Expr>() {
            Ok(Expr::Path(_)) => Ok(Time::Const(input.parse()?)),
            Ok(_) => Err(syn::Error::new_spanned(input.parse::<Expr>()?, expected())),
            Err(_) => Err(syn::Error::new(input.span(), expected())),
        };
    }
    let literal: Lit = input.parse()?;
    let millis = match &literal {
        Lit::Str(text) => duration::parse(name, &text.value()),
        Lit::Int(int) if int.suffix().is_empty() => {
            int.base10_parse().map_err(|_| duration::too_long(name))
        }
        Lit::Int(int) => {
            Err(format!("a duration with a unit is a string; write `{name} = \"{int}\"`"))
        }
        Lit::Float(_) => Err(format!(
            "a float is no duration; write a string such as `{name} = \"2500ms\"`, or an integer for milliseconds"
        )),
        _ => Err(expected()),
    };
    match millis {
        Ok(millis) => Ok(Time::Millis(millis, literal.span())),
        Err(message) => Err(syn::Error::new(literal.span(), message)),
    }
}

fn boolean(input: ParseStream<'_>) -> syn::Result<LitBool> {
    input.parse().map_err(|error| syn::Error::new(error.span(), "expected `true` or `false`"))
}

fn binding(input: ParseStream<'_>) -> syn::Result<Ident> {
    input.parse().map_err(|error| {
        syn::Error::new(error.span(), "expected a name for the lock guard, as in `bind = lock`")
    })
}

/// One of two words.
fn choice<T>(name: &str, input: ParseStream<'_>, choices: [(&str, T); 2]) -> syn::Result<T> {
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

fn or_else(input: ParseStream<'_>) -> syn::Result<OrElse> {
    let expected = "`or_else` must be the path of a function `fn(LockError) -> ..`, or a closure with one parameter, as in `or_else = |error| ..`";
    match expression(input, expected)? {
        Expr::Path(path) => Ok(OrElse::Path(path)),
        Expr::Closure(closure) if closure.asyncness.is_some() => Err(syn::Error::new(
            closure.asyncness.span(),
            "an `or_else` closure cannot be `async`; it returns what the function returns",
        )),
        Expr::Closure(closure) if closure.inputs.len() == 1 => Ok(OrElse::Closure(closure)),
        other => Err(syn::Error::new_spanned(other, expected)),
    }
}

fn expression(input: ParseStream<'_>, expected: &str) -> syn::Result<Expr> {
    let span = input.span();
    input.parse().map_err(|error| {
        // Behind the last token there is only the attribute to point at.
        let span = if input.is_empty() { span } else { error.span() };
        syn::Error::new(span, expected)
    })
}

fn crate_path(input: ParseStream<'_>) -> syn::Result<Path> {
    let expected = "`crate` must be the path of the cache-lock crate, without quotes, as in `crate = my_crate::cache_lock`";
    let span = input.span();
    input.call(Path::parse_mod_style).map_err(|_| syn::Error::new(span, expected))
}

#[cfg(test)]
mod tests;
