//! Reads the arguments of the attribute by the rows of the table.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{
    Ident, Lit, Token,
    ext::IdentExt as _,
    parse::{ParseStream, Parser as _},
};

use super::{
    Args, Time,
    table::{ARGUMENTS, Argument, Read},
};
use crate::{duration, errors::Errors, suggest};

impl Args {
    /// Reads all arguments. An unreadable argument is reported and skipped.
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
        let Some(argument) = ARGUMENTS.iter().find(|argument| argument.name == text) else {
            return Err(self.unknown(&name, input));
        };
        let &Argument { name: known, example, ref read, .. } = argument;
        if self.has_seen(known) {
            return Err(syn::Error::new(
                name.span(),
                format!("duplicate argument `{known}`; keep a single `{known}`"),
            ));
        }
        self.seen.push(text);

        let eq = input.parse::<Option<Token![=]>>()?;
        match (read, eq) {
            (Read::Flag(read), None) => {
                read(self, name.span());
                Ok(())
            }
            (Read::Flag(read), Some(eq)) => {
                read(self, name.span());
                Err(syn::Error::new(
                    eq.span,
                    format!("`{known}` takes no value; write `{example}`, or leave it out"),
                ))
            }
            (Read::Value(read), Some(_)) if !input.is_empty() => read(self, known, input, errors),
            (Read::Value(_), _) => Err(syn::Error::new(
                name.span(),
                format!("`{known}` needs a value; write `{example}`"),
            )),
        }
    }

    fn unnamed(&mut self, value: &Lit) -> syn::Error {
        let name = if self.has_seen("prefix") { "key" } else { "prefix" };
        let message = match value {
            Lit::Str(text) => {
                self.seen.push(name.to_owned());
                format!("this argument has no name; write `{name} = {:?}`", text.value())
            }
            _ => "this argument has no name; write it as in `timeout = \"2s\"`".to_owned(),
        };
        syn::Error::new(value.span(), message)
    }

    fn unknown(&mut self, name: &Ident, input: ParseStream<'_>) -> syn::Error {
        let text = name.unraw().to_string();
        let names = || ARGUMENTS.iter().map(|argument| argument.name);
        let known = ARGUMENTS
            .iter()
            .find(|argument| argument.elsewhere.contains(&&*text))
            .map(|argument| argument.name);
        let meant = known.or_else(|| suggest::nearest(&text, names()));
        // The user may list values after the template, as in `format!`.
        let stands_alone = input.is_empty() || input.peek(Token![,]);
        if stands_alone && self.has_key() && meant.is_none_or(|meant| meant == "key") {
            return syn::Error::new(
                name.span(),
                format!(
                    "`{text}` is not an argument of `#[cache_lock]`; write the value into the template, as in `key = \"{{{text}}}\"`"
                ),
            );
        }
        let help = match meant {
            Some(meant) => {
                // Without this, a misspelled argument is reported as missing too.
                self.seen.push(meant.to_owned());
                format!("did you mean `{meant}`?")
            }
            None => format!("expected one of {}", suggest::list(names())),
        };
        syn::Error::new(name.span(), format!("unknown argument `{text}`; {help}"))
    }

    /// Checks that need all arguments: a missing prefix, a `max_hold` that contradicts another argument.
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

fn skip_to_comma(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        if input.parse::<TokenTree>().is_err() {
            return;
        }
    }
}
