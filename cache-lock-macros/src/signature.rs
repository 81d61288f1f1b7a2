//! The signature of the annotated function: parsing, checks, attributes, return type.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote_spanned};
use syn::{
    Attribute, FnArg, GenericParam, ImplItemFn, Item, ItemFn, ReturnType, Safety, TraitItemFn,
    Type, TypeImplTrait,
    ext::IdentExt as _,
    spanned::Spanned as _,
    visit::Visit,
    visit_mut::{self, VisitMut},
};

use crate::{args::Args, boxed, errors::Errors};

/// Reads the annotated function. For another item, the error says where the attribute belongs.
pub(crate) fn parse(item: TokenStream) -> syn::Result<ItemFn> {
    if let Ok(function) = syn::parse2::<ItemFn>(item.clone()) {
        return Ok(function);
    }
    let misplaced = |span: Span| {
        syn::Error::new(span, "`#[cache_lock]` can only be applied to an `async fn` with a body")
    };
    if let Ok(function) = syn::parse2::<TraitItemFn>(item.clone()) {
        return Err(syn::Error::new(
            function.sig.ident.span(),
            "this function has no body to run under the lock; put `#[cache_lock]` on the method of the `impl`, or give this function a body",
        ));
    }
    match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Verbatim(_)) | Err(_) => {}
        Ok(Item::Impl(item)) => {
            return Err(syn::Error::new(
                item.impl_token.span,
                "`#[cache_lock]` cannot be applied to an `impl` block; put it on the method, which must be an `async fn`",
            ));
        }
        Ok(item) => return Err(misplaced(item_span(&item))),
    }
    // A function with a syntax error keeps syn's error.
    let looks_like_one = item.clone().into_iter().any(|token| token.to_string() == "fn");
    match syn::parse2::<ImplItemFn>(item.clone()) {
        Err(error) if looks_like_one => Err(error),
        _ => Err(misplaced(item.span())),
    }
}

/// The item without its attributes and visibility.
fn item_span(item: &Item) -> Span {
    match item {
        Item::Struct(item) => item.ident.span(),
        Item::Enum(item) => item.ident.span(),
        Item::Trait(item) => item.ident.span(),
        Item::Mod(item) => item.ident.span(),
        other => other.span(),
    }
}

/// Checks the function except for its parameters. Returns its return type, with `_` for `impl Trait`.
pub(crate) fn check(item: &ItemFn, args: &Args, errors: &mut Errors) -> Option<Type> {
    let sig = &item.sig;
    let written = if sig.asyncness.is_some() {
        written_return_type(item)
    } else if let Some(output) = boxed::output(item) {
        output
    } else {
        not_async(item, errors);
        return None;
    };
    check_duplicate(item, errors);
    check_qualifiers(item, errors);
    if !args.has_key() && !has_lock_key(item) {
        check_generics(item, errors);
    }
    check_return_type(&written, args, errors);
    Some(without_impl_trait(written))
}

fn not_async(item: &ItemFn, errors: &mut Errors) {
    // `#[tokio::main]` or `#[tokio::test]` has already removed the `async`.
    if is_test(item) || item.sig.ident == "main" {
        errors.on(
            &item.sig.ident,
            "`#[cache_lock]` must be written above `#[tokio::main]` or `#[tokio::test]`, not below; by itself it requires an `async fn`",
        );
    } else {
        errors.at(item.sig.fn_token.span, "`#[cache_lock]` requires an `async fn`");
    }
}

/// Whether the function has an attribute such as `#[tokio::test]`.
pub(crate) fn is_test(item: &ItemFn) -> bool {
    has_attribute(item, "test")
}

/// Whether the function has an attribute with a path that ends in `name`.
pub(crate) fn has_attribute(item: &ItemFn, name: &str) -> bool {
    item.attrs
        .iter()
        .any(|attr| attr.path().segments.last().is_some_and(|segment| segment.ident == name))
}

fn check_duplicate(item: &ItemFn, errors: &mut Errors) {
    for attr in item.attrs.iter().filter(|attr| is_cache_lock(attr)) {
        errors.on(
            attr.path(),
            "duplicate `#[cache_lock]`; a function holds a single lock, so remove this attribute",
        );
    }
}

/// Whether `attr` is `#[cache_lock]`. A renamed import is not recognised and acquires a second lock.
pub(crate) fn is_cache_lock(attr: &Attribute) -> bool {
    attr.path().segments.last().is_some_and(|segment| {
        segment.ident == "cache_lock" || segment.ident == "cache_lock_facade"
    })
}

fn check_qualifiers(item: &ItemFn, errors: &mut Errors) {
    let mut refuse = |span: Span, what: &str| {
        errors.at(span, format!("`#[cache_lock]` cannot be used on {what}"));
    };
    let sig = &item.sig;
    if let Some(token) = &sig.constness {
        refuse(token.span, "a `const fn`");
    }
    match &sig.safety {
        Safety::Unsafe(token) => refuse(token.span, "an `unsafe fn`"),
        Safety::Safe(token) => refuse(token.span, "a `safe fn`"),
        Safety::Default => {}
    }
    if let Some(abi) = &sig.abi {
        refuse(abi.extern_token.span, "an `extern` fn");
    }
    if let Some(variadic) = &sig.variadic {
        refuse(variadic.dots.spans[0], "a variadic function");
    }
    if let Err(error) = item.modifiers.require_empty() {
        refuse(error.span(), "a function with this modifier");
    }
}

fn has_lock_key(item: &ItemFn) -> bool {
    item.sig.inputs.iter().any(|input| {
        let (FnArg::Receiver(syn::Receiver { attrs, .. })
        | FnArg::Typed(syn::PatType { attrs, .. })) = input;
        attrs.iter().any(is_lock_key)
    })
}

/// Takes `#[lock_key]` off the parameters, since rustc does not know the attribute.
pub(crate) fn strip_lock_keys(item: &mut ItemFn) -> Vec<(FnArg, Attribute)> {
    let mut taken = Vec::new();
    for input in &mut item.sig.inputs {
        let attrs = match input {
            FnArg::Receiver(receiver) => &mut receiver.attrs,
            FnArg::Typed(typed) => &mut typed.attrs,
        };
        let found: Vec<_> = attrs.extract_if(.., |attr| is_lock_key(attr)).collect();
        taken.extend(found.into_iter().map(|attr| (input.clone(), attr)));
    }
    taken
}

/// Whether `attr` is `#[lock_key]`, with or without a path.
fn is_lock_key(attr: &Attribute) -> bool {
    attr.path().segments.last().is_some_and(|segment| segment.ident == "lock_key")
}

/// Reports a generic function without a key, since all its instantiations would share a lock.
fn check_generics(item: &ItemFn, errors: &mut Errors) {
    let generic = item.sig.generics.params.iter().find_map(|param| match param {
        GenericParam::Type(param) => Some((param.ident.to_token_stream(), "..".to_owned())),
        GenericParam::Const(param) => {
            Some((param.ident.to_token_stream(), param.ident.unraw().to_string()))
        }
        GenericParam::Lifetime(_) => None,
    });
    let generic = generic.or_else(|| {
        item.sig.inputs.iter().find_map(|input| match input {
            FnArg::Typed(typed) => {
                impl_trait(&typed.ty).map(|ty| (ty.to_token_stream(), "..".to_owned()))
            }
            FnArg::Receiver(_) => None,
        })
    });
    if let Some((generic, value)) = generic {
        errors.on(
            generic,
            format!(
                "all instantiations of this generic function would share one lock; add `key = \"{{{value}}}\"`, or `key = \"\"` if that is intended"
            ),
        );
    }
}

fn check_return_type(ty: &Type, args: &Args, errors: &mut Errors) {
    let shown = show(ty);
    let skips = args.skip_if_locked.is_some();
    match ty {
        Type::ImplTrait(_) => errors.on(
            ty,
            format!("an `impl Trait` return type cannot carry a lock failure; return `Result<{shown}, E>`"),
        ),
        Type::Never(_) => {
            errors.on(ty, "this function never returns, so its lock would not be released; put `#[cache_lock]` on a function that returns");
        }
        _ if skips && is_unit(ty) => errors.on(
            ty,
            "`skip_if_locked` needs a return value for a skipped call, and `()` has none; return `Result<Option<()>, E>`",
        ),
        _ if skips && is_option(ty) && args.or_else.is_none() => errors.on(
            ty,
            format!(
                "with `skip_if_locked` alone, a dead server could not be reported through `{shown}`; return `Result<{shown}, E>` or add `or_else = path`"
            ),
        ),
        _ if is_unit(ty) && args.or_else.is_none() => errors.on(
            ty,
            "this function returns `()`, so a failed lock could not be reported; return `Result<(), E>` or add `or_else = path`",
        ),
        _ => {}
    }
}

fn is_unit(ty: &Type) -> bool {
    show(ty) == "()"
}

fn is_option(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
}

/// The text of a type without the spaces between its tokens.
fn show(ty: &Type) -> String {
    let text = ty.to_token_stream().to_string();
    [(" <", "<"), ("< ", "<"), (" >", ">"), (" ,", ","), (" ::", "::"), (":: ", "::"), ("& ", "&")]
        .into_iter()
        .fold(text, |text, (spaced, tight)| text.replace(spaced, tight))
}

fn impl_trait(ty: &Type) -> Option<&TypeImplTrait> {
    struct FindImplTrait<'a>(Option<&'a TypeImplTrait>);
    impl<'a> Visit<'a> for FindImplTrait<'a> {
        fn visit_type_impl_trait(&mut self, ty: &'a TypeImplTrait) {
            self.0.get_or_insert(ty);
        }
    }
    let mut find = FindImplTrait(None);
    find.visit_type(ty);
    find.0
}

/// The return type of the signature. Default: `()`.
fn written_return_type(item: &ItemFn) -> Type {
    match &item.sig.output {
        ReturnType::Type(_, ty) => (**ty).clone(),
        // The span of the name, since the signature has no type.
        ReturnType::Default => {
            let span = item.sig.ident.span();
            Type::Verbatim(quote_spanned!(span=> ()))
        }
    }
}

/// Replaces `impl Trait` by `_`, since the expansion repeats the return type inside the body.
fn without_impl_trait(mut ty: Type) -> Type {
    struct Infer;
    impl VisitMut for Infer {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            if let Type::ImplTrait(opaque) = ty {
                *ty = Type::Infer(syn::TypeInfer {
                    attrs: Vec::new(),
                    underscore_token: syn::Token![_](opaque.span()),
                });
            }
            visit_mut::visit_type_mut(self, ty);
        }
    }
    Infer.visit_type_mut(&mut ty);
    ty
}
