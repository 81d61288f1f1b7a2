//! The tokens of the expansion, from checked input.
//!
//! Names of the expansion have the hygiene of `Span::mixed_site()`, so they do not collide with the
//! user's names. All paths start at the runtime's module for expansions, also paths of the standard
//! library, since `::core` may be a dependency of the user's crate. The expansion calls methods by
//! path, since a trait of the user may have a method of the same name. So shadowed names and a missing
//! prelude change nothing.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote_spanned};
use syn::{ExprPath, Stmt, ext::IdentExt as _, spanned::Spanned as _};

use crate::{
    args::{Args, OnLostArg, OrElse, Prefix},
    crate_path::CratePath,
    function::Function,
    options,
    pattern::Binding,
    scope::{self, Part},
};

/// The function with its body under the lock.
pub(crate) fn expand(
    args: &Args,
    function: Function,
    key: &[Part],
    crate_path: &CratePath,
) -> TokenStream {
    let expansion = Expansion { args, function: &function, key, crate_path };
    let statements = expansion.statements();
    function.with_body(statements)
}

/// A statement that declares the guard's name, for the function that is emitted beside errors. Without
/// it, rustc reports each use of the guard in the body. If the body `consumes` the guard, the type is
/// the guard itself, not a reference.
pub(crate) fn bind_only(
    args: &Args,
    consumes: bool,
    crate_path: &CratePath,
) -> Option<TokenStream> {
    let bind = args.bind.as_ref()?;
    let site = Span::mixed_site();
    let private = crate_path.private(site);
    let cache_lock = crate_path.at(site);
    let reference = (!consumes).then(|| quote_spanned!(site=> &));
    let ty = quote_spanned!(site=> #reference #cache_lock::LockGuard);
    let ty = if args.when.is_some() { quote_spanned!(site=> #private::Option<#ty>) } else { ty };
    Some(quote_spanned!(site=> let #bind = (|| -> #ty { loop {} })();))
}

struct Expansion<'a> {
    args: &'a Args,
    function: &'a Function,
    key: &'a [Part],
    crate_path: &'a CratePath,
}

impl Expansion<'_> {
    fn private(&self) -> TokenStream {
        self.crate_path.private(Span::mixed_site())
    }

    fn statements(&self) -> TokenStream {
        let private = self.private();
        let guard = self.guard();
        let pin = &self.function.pin;
        let arguments = &self.function.arguments;
        let acquire = self.acquire();
        let lock = self.lock_reference();
        let body = self.body();
        let hold = self.hold();
        let release = self.release();
        let finish = if self.runs_to_its_end() {
            quote_spanned!(Span::mixed_site()=> outcome)
        } else {
            let lost = self.lost();
            quote_spanned! {Span::mixed_site()=>
                match outcome {
                    #private::Ok(value) => value,
                    #private::Err(error) => #lost,
                }
            }
        };
        // The guard is declared before the block of the arguments, so Rust drops the arguments first:
        // at the end of the body, on unwinding, and when the future is dropped.
        quote_spanned! {Span::mixed_site()=>
            #pin
            let #guard;
            let outcome = {
                #(#arguments)*
                #acquire
                #lock
                let body = async move { #body };
                let body = #private::pin!(body);
                #hold
            };
            #release
            #finish
        }
    }

    /// The variable that holds the guard. With `bind`, it has the span and hygiene of the user's name,
    /// since rustc names a variable in errors only then. If a body keeps the reference for too long, the
    /// error points to that name, and the variable's name says the reason.
    fn guard(&self) -> Ident {
        match &self.args.bind {
            Some(bind) => {
                // Without the underscore: this variable is used, even if the user's name is not.
                let name = bind.unraw().to_string();
                let name = name.trim_start_matches(|c: char| c == '_' || c.is_numeric());
                let name = if name.is_empty() { "guard" } else { name };
                Ident::new(&format!("{name}_ends_with_the_body"), bind.span())
            }
            None => Ident::new("guard", Span::mixed_site()),
        }
    }

    fn acquire(&self) -> TokenStream {
        let guard = self.guard();
        let private = self.private();
        let manager = self.manager();
        let key = self.lock_key();
        let options = options::options(self.args, self.crate_path);
        let failed = self.failed();
        let skip = self.args.skip_if_locked.map(|_| {
            let skipped = self.through("SkipIfLocked", "skipped");
            quote_spanned! {Span::mixed_site()=>
                #private::Err(error) if #private::is_contended(&error) => return #skipped(),
            }
        });
        let acquire = |some: TokenStream| {
            quote_spanned! {Span::mixed_site()=>
                match #private::acquire(#manager, key, options).await {
                    #private::Ok(guard) => #some,
                    #skip
                    #private::Err(error) => return #failed,
                }
            }
        };
        match &self.args.when {
            None => {
                let acquire = acquire(quote_spanned!(Span::mixed_site()=> guard));
                quote_spanned! {Span::mixed_site()=>
                    let key = #key;
                    let options = #options;
                    #guard = #acquire;
                }
            }
            Some(when) => {
                let when = self.expression(when);
                let acquire = acquire(quote_spanned!(Span::mixed_site()=> #private::Some(guard)));
                quote_spanned! {Span::mixed_site()=>
                    let enabled: #private::bool = #when;
                    #guard = if enabled {
                        let key = #key;
                        let options = #options;
                        #acquire
                    } else {
                        #private::None
                    };
                }
            }
        }
    }

    fn manager(&self) -> TokenStream {
        let Some(with) = &self.args.with else {
            let private = self.private();
            return quote_spanned!(Span::mixed_site()=> #private::manager());
        };
        let span = with.span().resolved_at(Span::mixed_site());
        let private = self.crate_path.private(span);
        let with = self.expression(with);
        quote_spanned!(span=> #private::cloned(&#with))
    }

    fn lock_key(&self) -> TokenStream {
        let site = Span::mixed_site();
        let private = self.crate_path.private(site);
        let prefix = match &self.args.prefix {
            Some(Prefix::Literal(literal)) => literal.to_token_stream(),
            Some(Prefix::Const(path)) => options::prefix(path, self.crate_path),
            None => TokenStream::new(),
        };
        let parts = self.key.iter().enumerate().map(|(index, part)| match part {
            Part::Text(text) => quote_spanned!(site=> #private::KeyBuilder::text(&mut key, #text);),
            Part::Value(value, span) => {
                let following = match self.key.get(index + 1) {
                    Some(Part::Text(text)) => text,
                    _ => "",
                };
                let value = quote_spanned!(*span=> &#value);
                quote_spanned!(site=> #private::KeyBuilder::value(&mut key, #value, #following);)
            }
        });
        let mutability = (!self.key.is_empty()).then(|| quote_spanned!(site=> mut));
        quote_spanned! {site=>
            {
                let #mutability key = #private::KeyBuilder::new(#prefix);
                #(#parts)*
                #private::KeyBuilder::finish(&key)
            }
        }
    }

    /// The reference to the guard that the body gets.
    fn lock_reference(&self) -> Option<TokenStream> {
        self.args.bind.as_ref()?;
        let guard = self.guard();
        let site = guard.span().resolved_at(Span::mixed_site());
        // The borrow and the release share a span; with two spans, rustc reports two errors.
        let reference = quote_spanned!(guard.span()=> &#guard);
        Some(if self.args.when.is_some() {
            let private = self.crate_path.private(site);
            quote_spanned!(site=> let lock = #private::lend(#reference);)
        } else {
            quote_spanned!(site=> let lock = #reference;)
        })
    }

    fn body(&self) -> TokenStream {
        let site = Span::mixed_site();
        let pin = (!self.function.body.is_empty()).then(|| self.pin_inference());
        let receiver = self.function.owned_receiver.map(|receiver| {
            // Captures the whole receiver, even if the body uses only a field, or nothing.
            quote_spanned!(site=> let _ = &#receiver;)
        });
        let moves = self.function.bindings.iter().map(|binding| {
            let Binding { name, mutability, attrs } = binding;
            let used = self
                .is_used_outside(name)
                .then(|| quote_spanned!(site=> #(#attrs)* let _ = &#name;));
            // Clippy lints these statements as the user's.
            let mut allow = quote_spanned!(site=> clippy::shadow_same);
            if name.to_string().starts_with('_') {
                allow.extend(quote_spanned! {site=>
                    , clippy::used_underscore_binding, clippy::no_effect_underscore_binding
                });
            }
            quote_spanned!(site=> #(#attrs)* #[allow(#allow)] let #mutability #name = #name; #used)
        });
        let bind = self.args.bind.as_ref().map(|bind| {
            let allow = bind
                .to_string()
                .starts_with('_')
                .then(|| quote_spanned!(site=> #[allow(clippy::no_effect_underscore_binding)]));
            quote_spanned!(site=> #allow let #bind = lock;)
        });
        // Items stay first, for clippy's `items_after_statements`.
        let statements = &self.function.body;
        let items =
            statements.iter().take_while(|statement| matches!(statement, Stmt::Item(_))).count();
        let (items, statements) = statements.split_at(items);
        // The user's braces: rustc drops temporaries by the user's edition, and reports a missing value
        // at these braces.
        let block = quote_spanned!(site=> #(#items)* #pin #(#statements)*);
        let block = braces(block, self.function.body_span());
        quote_spanned! {site=>
            #receiver
            #(#moves)*
            #bind
            #block
        }
    }

    /// Fixes the type of `return` and `?` in the body. Never runs. As a statement of the body's block, it
    /// keeps `unused_braces` silent about a one-line body.
    fn pin_inference(&self) -> TokenStream {
        let returns = &self.function.returns;
        quote_spanned! {Span::mixed_site()=>
            #[allow(unreachable_code, clippy::diverging_sub_expression, clippy::empty_loop)]
            if false {
                let returned: #returns = loop {};
                return returned;
            }
        }
    }

    /// Whether the attribute uses the parameter, so that rustc must not report it as unused.
    fn is_used_outside(&self, name: &Ident) -> bool {
        let args = self.args;
        let or_else = args.or_else.as_ref().map(|or_else| match or_else {
            OrElse::Path(path) => path.to_token_stream(),
            OrElse::Closure(closure) => closure.to_token_stream(),
        });
        let expressions =
            [&args.when, &args.with].into_iter().flatten().map(|expr| self.expression(expr));
        let values = self.key.iter().filter_map(|part| match part {
            Part::Value(value, _) => Some(value.clone()),
            Part::Text(_) => None,
        });
        expressions.chain(or_else).chain(values).any(|tokens| scope::mentions(tokens, name))
    }

    fn hold(&self) -> TokenStream {
        let guard = self.guard();
        let site = Span::mixed_site();
        let private = self.crate_path.private(site);
        let (hold, unlocked) = if self.runs_to_its_end() {
            (quote_spanned!(site=> hold_to_end), quote_spanned!(site=> body.await))
        } else {
            let unlocked = quote_spanned!(site=> #private::Ok(body.await));
            (quote_spanned!(site=> hold), unlocked)
        };
        if self.args.when.is_none() {
            return quote_spanned!(site=> #private::#hold(&#guard, body).await);
        }
        quote_spanned! {site=>
            match &#guard {
                #private::Some(guard) => #private::#hold(guard, body).await,
                #private::None => #unlocked,
            }
        }
    }

    /// Whether the body runs to its end after the lock is lost.
    fn runs_to_its_end(&self) -> bool {
        self.args.on_lost == Some(OnLostArg::Finish)
    }

    fn release(&self) -> TokenStream {
        let guard = self.guard();
        let private = self.private();
        let release = quote_spanned!(Span::mixed_site()=> #private::release(#guard).await;);
        if self.args.when.is_none() {
            return release;
        }
        quote_spanned! {Span::mixed_site()=>
            let released = #guard;
            if let #private::Some(#guard) = released { #release }
        }
    }

    /// Turns `error` into the return value if the lock is not acquired.
    fn failed(&self) -> TokenStream {
        match &self.args.or_else {
            None => self.report("ReportLockError"),
            Some(OrElse::Path(path)) => call(path),
            Some(OrElse::Closure(closure)) => {
                let closure = self.expression(closure);
                let private = self.private();
                let returns = &self.function.returns;
                quote_spanned!(Span::mixed_site()=> #private::or_else::<#returns, _>(error, #closure))
            }
        }
    }

    /// Turns `error` into the return value if the lock was lost and the body cancelled.
    fn lost(&self) -> TokenStream {
        match &self.args.or_else {
            None => self.report("ReportLockError"),
            // `return`, as in `failed`, so that rustc reports a wrong type only once.
            Some(OrElse::Path(path)) => {
                let call = call(path);
                quote_spanned!(Span::mixed_site()=> return #call)
            }
            Some(OrElse::Closure(_)) => self.report("ReportLostLock"),
        }
    }

    fn report(&self, report: &str) -> TokenStream {
        let report = self.through(report, "report");
        quote_spanned!(Span::mixed_site()=> #report(error))
    }

    /// `<Ret as Trait>::method`, at the span of the return type, which lacks the impl.
    fn through(&self, name: &str, method: &str) -> TokenStream {
        let returns = &self.function.returns;
        let span = returns.span().resolved_at(Span::mixed_site());
        let private = self.crate_path.private(span);
        let (name, method) = (Ident::new(name, span), Ident::new(method, span));
        quote_spanned!(span=> <#returns as #private::#name>::#method)
    }

    fn expression(&self, expr: &impl quote::ToTokens) -> TokenStream {
        scope::rename_self(expr.to_token_stream(), self.function.receiver.as_ref())
    }
}

/// `path(error)` at the span of the path, so that a type error points to the path.
fn call(path: &ExprPath) -> TokenStream {
    let span = path.span().resolved_at(Span::mixed_site());
    let error = Ident::new("error", span);
    quote_spanned!(span=> #path(#error))
}

fn braces(statements: TokenStream, span: Span) -> TokenStream {
    let mut group = Group::new(Delimiter::Brace, statements);
    group.set_span(span);
    TokenTree::Group(group).into()
}
