//! What trybuild cannot see, since it shows only what rustc has not removed.

use quote::quote;

use crate::cache_lock_at;

#[test]
fn below_a_test_attribute() {
    // As `#[tokio::test]` leaves it; without `--test` rustc drops the function.
    let item = quote! {
        #[::core::prelude::v1::test]
        fn saves() {}
    };
    let expanded = cache_lock_at(quote!(prefix = "orders"), item, quote!(::cache_lock)).to_string();
    assert!(expanded.contains("must be written above `#[tokio::main]` or `#[tokio::test]`"));
    assert!(expanded.contains("fn saves () { }"), "{expanded}");
}
