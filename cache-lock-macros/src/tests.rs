//! Expansions that trybuild cannot check, since rustc removes the function without `--test`.

use quote::quote;

use crate::cache_lock_at;

#[test]
fn attribute_below_a_test_attribute_is_refused() {
    // The output of `#[tokio::test]`.
    let item = quote! {
        #[::core::prelude::v1::test]
        fn saves() {}
    };
    let expanded = cache_lock_at(quote!(prefix = "orders"), item, quote!(::cache_lock)).to_string();
    assert!(expanded.contains("must be written above `#[tokio::main]` or `#[tokio::test]`"));
    assert!(expanded.contains("fn saves () { }"), "{expanded}");
}
