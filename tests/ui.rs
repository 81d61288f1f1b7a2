//! What the attribute refuses, word for word, and what it must accept.
//!
//! The wording of rustc changes from release to release, and lists of implementing types with the
//! features of the crate. So the `.stderr` files are those of one toolchain and of the default
//! features; elsewhere they are left out, and the run says so. `TRYBUILD=overwrite` renews them.

use std::process::Command;

const TOOLCHAIN: &str = "rustc 1.95.0";

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*/*.rs");
    match reason_to_leave_out_messages() {
        None => cases.compile_fail("tests/ui/fail/*/*.rs"),
        // libtest hides what a passing test prints, unless it is run with `--nocapture`.
        Some(reason) => eprintln!("tests/ui/fail is left out: {reason}"),
    }
}

fn reason_to_leave_out_messages() -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("rustc runs").stdout;
    let version = String::from_utf8_lossy(&version);
    if !version.starts_with(TOOLCHAIN) {
        return Some(format!("its messages are those of {TOOLCHAIN}, and this is {}", version.trim()));
    }
    let features = [cfg!(feature = "tls"), cfg!(feature = "uuid"), cfg!(feature = "bson"), cfg!(feature = "serde")];
    if !cfg!(feature = "redis") || features.contains(&true) {
        return Some("its messages are those of the default features".to_owned());
    }
    None
}
