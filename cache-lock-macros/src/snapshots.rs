//! Typical functions and their expansions, formatted as code.
//!
//! The attribute expands `snapshots/NAME.rs` to `snapshots/NAME.expanded.rs`.
//! `UPDATE_EXPECT=1 cargo test -p cache-lock-macros` rewrites the expansions.

use std::{fs, path::PathBuf};

use expect_test::expect_file;
use quote::{ToTokens as _, quote};
use syn::{File, Item, ItemFn, Meta};

use crate::{cache_lock_at, signature::is_cache_lock};

fn check(name: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/snapshots");
    let written = fs::read_to_string(folder.join(format!("{name}.rs"))).expect(name);
    expect_file![folder.join(format!("{name}.expanded.rs"))].assert_eq(&expand_all(&written));
}

/// Expands every `#[cache_lock]` of a file, in functions and in the methods of an `impl`.
fn expand_all(written: &str) -> String {
    let mut file: File = syn::parse_str(written).expect("the snapshot is Rust");
    for item in &mut file.items {
        match item {
            Item::Fn(function) => *item = Item::Verbatim(expand_one(function.clone())),
            Item::Impl(block) => {
                for item in &mut block.items {
                    let function: ItemFn =
                        syn::parse2(item.to_token_stream()).expect("the snapshot has methods only");
                    *item = syn::parse2(expand_one(function)).expect("a method stays one");
                }
            }
            _ => {}
        }
    }
    // Once more through the parser, since prettyplease prints no verbatim items.
    let tokens = file.into_token_stream();
    let file = syn::parse2(tokens.clone())
        .unwrap_or_else(|error| panic!("the expansion does not parse: {error}\n{tokens}"));
    prettyplease::unparse(&file)
}

fn expand_one(mut function: ItemFn) -> proc_macro2::TokenStream {
    let Some(index) = function.attrs.iter().position(is_cache_lock) else {
        return function.into_token_stream();
    };
    let attr = function.attrs.remove(index);
    let Meta::List(args) = attr.meta else { panic!("the attribute has no arguments") };
    cache_lock_at(args.tokens, function.into_token_stream(), quote!(::cache_lock))
}

macro_rules! snapshots {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*
    };
}

snapshots! {
    plain
    methods
    patterns
    bound_guard
    conditional
    or_else_path
    or_else_closure
    skip_if_locked
    constants
    boxed
    background_release
}
