//! A flash sale.
fn main() {}
