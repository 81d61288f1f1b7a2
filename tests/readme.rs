//! What the README shows is what is built and run.

#[test]
fn the_first_listing_is_the_quickstart() {
    let readme = include_str!("../README.md");
    let quickstart = include_str!("../examples/quickstart.rs");
    let (_, program) = quickstart.split_once("\n\n").expect("a description, then the program");
    assert!(
        readme.contains(&format!("```rust\n{program}```")),
        "write it into the README:\n{program}"
    );
}
