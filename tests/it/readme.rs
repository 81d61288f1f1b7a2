//! The README and the docs show the code that is built and run.

#[test]
fn first_listing_is_quickstart() {
    let readme = include_str!("../../README.md");
    let quickstart = include_str!("../../examples/quickstart.rs");
    let (_, program) = quickstart.split_once("\n\n").expect("a description, then the program");
    assert!(
        readme.contains(&format!("```rust\n{program}```")),
        "write it into the README:\n{program}"
    );
}

#[test]
fn listing_for_once_night_is_in_its_example() {
    let docs = include_str!("../../docs/single-flight.md");
    let (_, section) = docs.split_once("## Once a night").expect("the section is there");
    let (_, listing) = section.split_once("```rust\n").expect("it has a listing");
    let (listing, _) = listing.split_once("```").expect("the listing ends");
    assert!(listing.contains("async fn once"), "{listing}");
    let example = include_str!("../../examples/once_a_night.rs");
    assert!(example.contains(listing), "the example has something else than:\n{listing}");
}
