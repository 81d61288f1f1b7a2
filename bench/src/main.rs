//! Builds and runs the benchmark: `cargo run --release -p lock-bench -- --help`.
//!
//! The benchmark itself, in `suite/`, is a workspace of its own. The crates that it compares with
//! cache-lock need a newer Rust and other versions of dependencies; inside of this workspace they
//! would decide what everything else is built and checked with.

use std::{
    env,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, ExitCode},
};

fn main() -> ExitCode {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The target directory is shared, so what both workspaces need is built once.
    let error = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["run", "--release", "--manifest-path"])
        .arg(bench.join("suite/Cargo.toml"))
        .arg("--target-dir")
        .arg(bench.join("../target"))
        .arg("--")
        .args(env::args_os().skip(1))
        .exec();
    eprintln!("cargo cannot be run: {error}");
    ExitCode::FAILURE
}
