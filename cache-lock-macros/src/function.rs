//! The parts of the annotated function that the expansion needs: arguments, body, return type.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens as _, quote_spanned};
use syn::{
    Attribute, FnArg, ItemFn, Meta, Pat, PatIdent, ReceiverKind, Stmt, Token, Type,
    ext::IdentExt as _, spanned::Spanned as _,
};

use crate::{
    args::Args,
    boxed::{self, Boxed},
    errors::Errors,
    key::{self, Field},
    pattern::{self, Binding},
    signature,
};

pub(crate) struct Function {
    /// The function to emit, with an empty body.
    item: ItemFn,
    boxed: bool,
    /// The first statement of a body that async_trait has boxed.
    pub(crate) pin: Option<Stmt>,
    /// Statements that move arguments out of parameters with partial patterns.
    pub(crate) arguments: Vec<TokenStream>,
    /// The names that move into the body.
    pub(crate) bindings: Vec<Binding>,
    /// Names that the body reads without a move: reference parameters of a boxed body.
    borrowed: Vec<Ident>,
    /// The name of `self` in the code that acquires the lock.
    pub(crate) receiver: Option<Ident>,
    /// A receiver that moves into the body, so that it is dropped before the lock is released.
    pub(crate) owned_receiver: Option<Token![self]>,
    pub(crate) body: Vec<Stmt>,
    /// The return type. Default: `()`.
    pub(crate) returns: Type,
    /// The parameters with `#[lock_key]`, in order.
    pub(crate) lock_keys: Vec<LockKeyParam>,
}

/// `#[lock_key(fields)]` on the parameter `name`.
pub(crate) struct LockKeyParam {
    pub(crate) name: Ident,
    pub(crate) fields: Vec<Field>,
    pub(crate) span: Span,
}

impl Function {
    /// Checks the function and takes it apart. `None` if it has no `async` body.
    pub(crate) fn new(mut item: ItemFn, args: &Args, errors: &mut Errors) -> Option<Self> {
        let returns = signature::check(&item, args, errors)?;
        let marked = signature::strip_lock_keys(&mut item);
        let boxed = boxed::take(&mut item);
        let lock_keys = lock_keys(&marked, boxed.as_ref(), args, errors);
        let mut function = Self {
            boxed: boxed.is_some(),
            pin: None,
            arguments: Vec::new(),
            bindings: Vec::new(),
            borrowed: Vec::new(),
            receiver: item.sig.receiver().map(|receiver| receiver.self_token.into()),
            owned_receiver: None,
            body: Vec::new(),
            returns,
            lock_keys,
            item,
        };
        match boxed {
            Some(boxed) => function.take_boxed(boxed),
            None => function.take_async(),
        }
        Some(function)
    }

    /// Moves a pattern from the parameter into a statement if the pattern leaves a part behind.
    fn take_async(&mut self) {
        self.body = std::mem::take(&mut self.item.block.stmts);
        for (index, input) in self.item.sig.inputs.iter_mut().enumerate() {
            match input {
                FnArg::Receiver(receiver) => {
                    if !matches!(receiver.kind, ReceiverKind::Reference(..)) {
                        self.owned_receiver = Some(receiver.self_token);
                    }
                }
                FnArg::Typed(typed) => {
                    self.bindings.extend(pattern::bindings(&typed.pat, &typed.attrs));
                    // Only the statement that moves the name into the body fulfills `expect`.
                    typed.attrs.retain(|attr| !attr.path().is_ident("expect"));
                    let mut pat = (*typed.pat).clone();
                    pattern::strip_mut(&mut pat);
                    if pattern::binds_everything(&pat) {
                        *typed.pat = pat;
                    } else {
                        let name = plain_name(index, &pat);
                        *typed.pat = Pat::Ident(PatIdent {
                            attrs: Vec::new(),
                            by_ref: None,
                            mutability: None,
                            ident: name.clone(),
                            subpat: None,
                        });
                        let attrs = &typed.attrs;
                        let mutability =
                            pattern::borrows_mutably(&pat).then_some(Token![mut](name.span()));
                        // Two statements, so that parts skipped by `_` live as long as the rest.
                        self.arguments.push(quote_spanned! {Span::mixed_site()=>
                            #(#attrs)* let #mutability #name = #name;
                            #(#attrs)* let #pat = #name;
                        });
                    }
                }
            }
        }
    }

    /// Takes the arguments from the statements that async_trait has inserted before the body.
    fn take_boxed(&mut self, boxed: Boxed) {
        self.pin = boxed.pin;
        self.body = boxed.body;
        for boxed::MovedArgument { parameter, mut local } in boxed.arguments {
            let bindings = pattern::bindings(&local.pat, &local.attrs);
            if let [binding] = &bindings[..]
                && parameter == "self"
            {
                self.receiver = Some(binding.name.clone());
            }
            pattern::strip_mut(&mut local.pat);
            self.arguments.push(local.to_token_stream());
            self.bindings.extend(bindings);
        }
        for input in &self.item.sig.inputs {
            if let FnArg::Typed(typed) = input
                && let Pat::Ident(pat) = &*typed.pat
                && !pat.ident.to_string().starts_with("__")
                && !self.bindings.iter().any(|binding| binding.name == pat.ident)
            {
                self.borrowed.push(pat.ident.clone());
            }
        }
    }

    /// The parameter with this name, without `r#`.
    pub(crate) fn parameter(&self, name: &str) -> Option<&Ident> {
        self.parameters().find(|ident| ident.unraw() == name)
    }

    /// The names that a key may use, except `self`.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &Ident> {
        let moved = self.bindings.iter().map(|binding| &binding.name);
        moved.filter(|name| self.receiver.as_ref() != Some(name)).chain(&self.borrowed)
    }

    /// The const parameter with this name. The attribute does not see parameters of the `impl`.
    pub(crate) fn const_parameter(&self, name: &str) -> Option<&Ident> {
        let mut params = self.item.sig.generics.const_params();
        params.find(|param| param.ident.unraw() == name).map(|param| &param.ident)
    }

    pub(crate) fn has_type_parameter(&self, name: &str) -> bool {
        self.item.sig.generics.type_params().any(|param| param.ident.unraw() == name)
    }

    /// The type of the parameter with this name, if the pattern is only the name.
    pub(crate) fn type_of(&self, name: &str) -> Option<&Type> {
        self.item.sig.inputs.iter().find_map(|input| match input {
            FnArg::Typed(typed) => match &*typed.pat {
                Pat::Ident(pat) if pat.ident.unraw() == name => Some(&*typed.ty),
                _ => None,
            },
            FnArg::Receiver(_) => None,
        })
    }

    /// Whether the program calls the function only once: `main`, or a test.
    pub(crate) fn runs_once(&self) -> bool {
        self.item.sig.ident == "main"
            || signature::is_test(&self.item)
            || signature::has_attribute(&self.item, "main")
    }

    /// The function with `statements` as the body of its future.
    pub(crate) fn with_body(self, statements: TokenStream) -> TokenStream {
        let Self { mut item, .. } = self;
        if self.boxed {
            boxed::put(&mut item, vec![Stmt::Expr(syn::Expr::Verbatim(statements), None)]);
            return item.into_token_stream();
        }
        item.block.stmts = vec![Stmt::Expr(syn::Expr::Verbatim(statements), None)];
        item.into_token_stream()
    }

    /// The braces of the body. Rustc underlines them if the body lacks a value.
    pub(crate) fn body_span(&self) -> Span {
        self.item.block.brace_token.span.join()
    }
}

/// The name of a parameter after its pattern has moved into a statement.
fn plain_name(index: usize, pat: &Pat) -> Ident {
    Ident::new(&format!("arg{index}"), pat.span().resolved_at(Span::mixed_site()))
}

fn lock_keys(
    marked: &[(FnArg, Attribute)],
    boxed: Option<&Boxed>,
    args: &Args,
    errors: &mut Errors,
) -> Vec<LockKeyParam> {
    if args.has_key()
        && let Some((_, attr)) = marked.first()
    {
        errors.on(attr, "`#[lock_key]` and `key` both make the key; keep one of them");
        return Vec::new();
    }
    marked.iter().filter_map(|(input, attr)| errors.ok(lock_key(input, attr, boxed))).collect()
}

fn lock_key(input: &FnArg, attr: &Attribute, boxed: Option<&Boxed>) -> syn::Result<LockKeyParam> {
    let FnArg::Typed(typed) = input else {
        return Err(syn::Error::new_spanned(
            attr,
            "`#[lock_key]` cannot be on `self`; use a field, as in `key = \"{self.id}\"`",
        ));
    };
    let fields = match &attr.meta {
        Meta::Path(_) => Vec::new(),
        Meta::List(list) if list.tokens.is_empty() => {
            return Err(syn::Error::new_spanned(attr, key::EXPECTED_FIELD));
        }
        Meta::List(list) => key::parse_fields(list.tokens.clone())?,
        Meta::NameValue(_) => {
            return Err(syn::Error::new_spanned(
                attr,
                "`#[lock_key]` takes no value; write `#[lock_key]` or `#[lock_key(field)]`",
            ));
        }
    };
    let pat = boxed.and_then(|boxed| boxed.pattern_of(&typed.pat)).unwrap_or(&typed.pat);
    let names = pattern::bindings(pat, &[]);
    let [Binding { name, .. }] = &names[..] else {
        let count = if names.is_empty() { "none".to_owned() } else { names.len().to_string() };
        return Err(syn::Error::new_spanned(
            pat,
            format!(
                "`#[lock_key]` needs a pattern with exactly one name, and this pattern has {count}; use `key = \"{{..}}\"`"
            ),
        ));
    };
    // The span of the field, if any, since the field may not exist.
    let span = match &attr.meta {
        Meta::List(list) => list.tokens.span().resolved_at(name.span()),
        _ => name.span(),
    };
    Ok(LockKeyParam { name: name.clone(), fields, span })
}
