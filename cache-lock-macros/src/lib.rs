//! The attribute `#[cache_lock]`: reads its input, runs the checks, and emits the expansion.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, ItemFn, Stmt, parse_quote};

mod args;
mod boxed;
mod crate_path;
mod duration;
mod errors;
mod expand;
mod function;
mod key;
mod mistakes;
mod options;
mod pattern;
mod scope;
mod signature;
mod suggest;

use crate::{args::Args, crate_path::CratePath, errors::Errors, function::Function};

#[cfg_attr(not(doctest), doc = include_str!("cache_lock.md"))]
#[proc_macro_attribute]
pub fn cache_lock(
    args: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    cache_lock_at(args.into(), item.into(), quote!(::cache_lock_runtime)).into()
}

#[cfg_attr(not(doctest), doc = include_str!("cache_lock.md"))]
#[proc_macro_attribute]
pub fn cache_lock_facade(
    args: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    cache_lock_at(args.into(), item.into(), quote!(::cache_lock)).into()
}

/// Expands the attribute. Paths start with the `crate` argument. Default: `default_path`.
fn cache_lock_at(args: TokenStream, item: TokenStream, default_path: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let args = Args::parse(args, &mut errors);
    let crate_path = CratePath::new(&args, default_path);
    let Some(written) = errors.ok(signature::parse(item.clone())) else {
        let errors = errors.into_compile_errors();
        // An attribute on an expression must expand to a single expression.
        let item =
            if syn::parse2::<Expr>(item.clone()).is_ok() { TokenStream::new() } else { item };
        return quote!(#errors #item);
    };
    let mut consumes_guard = false;
    if let Some(function) = Function::new(written.clone(), &args, &mut errors) {
        let key = scope::key(&args, &function, &mut errors);
        scope::check_bind(&args, &function, &mut errors);
        consumes_guard = mistakes::check(&args, &function, &mut errors);
        if errors.is_empty() {
            return expand::expand(&args, function, &key, &crate_path);
        }
    }
    let item = without_lock(written, &args, consumes_guard, &crate_path);
    let errors = errors.into_compile_errors();
    quote!(#errors #item)
}

/// The function without the lock, so that callers and editors resolve it despite the errors.
fn without_lock(
    mut item: ItemFn,
    args: &Args,
    consumes_guard: bool,
    crate_path: &CratePath,
) -> ItemFn {
    signature::strip_lock_keys(&mut item);
    item.attrs.retain(|attr| !signature::is_cache_lock(attr));
    // A parameter may be used only by the attribute.
    item.attrs.push(parse_quote!(#[allow(unused_variables)]));
    if let Some(bind) = expand::bind_only(args, consumes_guard, crate_path) {
        item.block.stmts.insert(0, Stmt::Expr(Expr::Verbatim(bind), None));
    }
    item
}

#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod tests;
