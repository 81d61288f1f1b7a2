//! A binary of its own, since it runs cargo and is checked with other features than the rest.
//!
//! What the attribute refuses, word for word, and what it must accept.
//!
//! The wording of rustc changes from release to release, and lists of implementing types with the
//! features of the crate. So the `.stderr` files are those of one toolchain and of the default
//! features; elsewhere the cases are left out, and the run says so. What must be accepted is built
//! with all features all the same, in `pass-2021` and `pass-2024`. `TRYBUILD=overwrite` renews the
//! files.

use std::{
    io::{Write as _, stderr},
    process::Command,
};

const TOOLCHAIN: &str = "rustc 1.95.0";

#[test]
fn ui() {
    if let Some(reason) = reason_to_leave_out() {
        // Not `eprintln!`, which libtest hides as long as the test passes.
        writeln!(stderr(), "tests/ui is left out: {reason}").expect("standard error is there");
        return;
    }
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*/*.rs");
    cases.compile_fail("tests/ui/fail/*/*.rs");
}

fn reason_to_leave_out() -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("rustc runs").stdout;
    let version = String::from_utf8_lossy(&version);
    if !version.starts_with(TOOLCHAIN) {
        return Some(format!(
            "its messages are those of {TOOLCHAIN}, and this is {}",
            version.trim()
        ));
    }
    let features = [
        cfg!(feature = "tls"),
        cfg!(feature = "uuid"),
        cfg!(feature = "bson-2"),
        cfg!(feature = "bson-3"),
        cfg!(feature = "serde"),
    ];
    if !cfg!(feature = "redis") || features.contains(&true) {
        return Some("its messages are those of the default features".to_owned());
    }
    None
}

/// `ui/pass.rs` lists the pass cases for the crates that build them in both editions.
#[test]
fn every_pass_case_is_listed() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let list = std::fs::read_to_string(root.join("pass.rs")).expect("the list is there");
    let mut cases = 0;
    for topic in root.join("pass").read_dir().expect("the cases are there") {
        let topic = topic.expect("readable").path();
        for case in topic.read_dir().expect("a topic is a folder") {
            let case = case.expect("readable").path();
            let path = case.strip_prefix(&root).expect("it is below").display().to_string();
            assert!(list.contains(&format!("#[path = \"{path}\"]")), "{path} is not listed");
            let name = case.file_stem().expect("a file").to_string_lossy().into_owned();
            assert!(list.contains(&format!("        {name}\n")), "{name} is not run");
            cases += 1;
        }
    }
    assert!(cases >= 25, "only {cases} cases were found");
}
