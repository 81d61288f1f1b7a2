#!/usr/bin/env bash
# Every check of the project, from a clean clone: sets up what is missing, then ends with the first
# check that fails, or with a summary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# A shell that is no login shell may lack rustup's directory.
export PATH="$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin"

title=
passed=0
left_out=()

trap 'status=$?; [ $status = 0 ] || printf "\n== FAILED: %s (exit code %d)\n" "$title" $status' EXIT

# Runs a command under a heading, and tells how long it took.
step() { # TITLE COMMAND...
    title=$1
    local start=$SECONDS
    shift
    printf '\n== %s\n' "$title"
    "$@"
    printf '== %s: ok, %d s\n' "$title" $((SECONDS - start))
    passed=$((passed + 1))
}

leave_out() { # TITLE REASON
    printf '\n== %s: left out, %s\n' "$1" "$2"
    left_out+=("$1")
}

clippy() {
    cargo clippy --workspace --all-targets -- -D warnings
    cargo clippy --workspace --all-targets --all-features -- -D warnings
    # The facade without Redis; the other members need it.
    cargo clippy -p cache-lock -p cache-lock-runtime --no-default-features -- -D warnings
}

# A workspace of its own, where clippy is what can be had without building all of its dependencies.
benchmark() {
    cargo fmt --manifest-path bench/suite/Cargo.toml --check
    cargo clippy --manifest-path bench/suite/Cargo.toml --target-dir target --locked --all-targets \
        -- -D warnings
}

documentation() {
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps
}

dependencies() { cargo deny --all-features check bans licenses sources; }
advisories() { cargo deny --all-features check --disable-fetch advisories; }

has_cargo_deny() { cargo deny --version >/dev/null 2>&1; }
# Without optimisation, which takes longer than the check.
build_cargo_deny() { CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug cargo-deny; }

minimum_rust() {
    # A target directory of its own, or each toolchain would throw away what the other has built.
    cargo "+$rust_version" check --workspace --all-features --target-dir target/minimum-rust
}

quickstart() { env -u REDIS_URL cargo run --quiet --example quickstart; }
embedded_seckill() { env -u REDIS_URL -u MONGODB_URI cargo run --release -p seckill -- --mode all; }
embedded_single_flight() { env -u REDIS_URL -u MONGODB_URI cargo run --quiet -p single-flight; }
served_single_flight() {
    scripts/with-services.sh cargo run --quiet -p single-flight
    scripts/with-services.sh cargo run --quiet -p single-flight -- --kill
}
served_seckill() { scripts/with-services.sh cargo run --quiet --release -p seckill -- "$@"; }
embedded_storm() {
    env -u REDIS_URL -u MONGODB_URI cargo run --quiet -p booking -- storm --replicas 1 --slots 50
}
served_storm() { scripts/with-services.sh cargo run --quiet -p booking -- storm; }
embedded_hostel() { env -u REDIS_URL -u MONGODB_URI cargo run --release -p hostel -- "$@"; }
served_hostel() { scripts/with-services.sh cargo run --quiet --release -p hostel -- "$@"; }

step "Set-up" scripts/set-up.sh
step "Format" cargo fmt --all --check
step "Clippy" clippy
step "Benchmark, not run" benchmark
step "Documentation" documentation

rust_version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if RUSTUP_AUTO_INSTALL=0 cargo "+$rust_version" --version >/dev/null 2>&1; then
    step "Oldest Rust, $rust_version" minimum_rust
else
    leave_out "Oldest Rust, $rust_version" "for want of it: rustup toolchain install $rust_version"
fi

step "Unit and integration tests" cargo test --workspace --all-features --lib --bins --tests --examples
# Their messages are those of the default features.
step "Compile errors" cargo test -p cache-lock --test ui
step "Quickstart" quickstart
step "Documentation's tests" cargo test --workspace --all-features --doc
step "Seckill inside one process" embedded_seckill
step "Seckill with Redis and MongoDB" served_seckill --mode all
step "Seckill with four processes" served_seckill --mode all --processes 4
step "Seckill with a holder that outlives its lease" served_seckill --mode fenced --stall
step "Booking: a storm inside one process" embedded_storm
step "Booking: a storm on two replicas" served_storm
step "Single flight inside one process" embedded_single_flight
step "Single flight with four processes" served_single_flight
step "Hostel inside one process" embedded_hostel --chaos 0.2 --runs 10
step "Hostel with four processes that are killed" served_hostel --chaos 0.2 --processes 4 \
    --kill-every 1s

# Last, since a machine that starts from nothing has to build the tool first.
if [ -n "${CI:-}" ] && ! has_cargo_deny && ((SECONDS < 20 * 60)); then
    step "Build of cargo-deny" build_cargo_deny
fi
if has_cargo_deny; then
    step "Licences and sources of dependencies" dependencies
    if cargo deny fetch db 2>/dev/null; then
        step "Advisories on dependencies" advisories
    else
        leave_out "Advisories on dependencies" "their database cannot be fetched"
    fi
else
    leave_out "Checks of dependencies" "for want of cargo-deny: cargo install --locked cargo-deny"
fi

printf '\n== All %d checks passed in %d min %d s\n' "$passed" $((SECONDS / 60)) $((SECONDS % 60))
for title in ${left_out[@]+"${left_out[@]}"}; do printf '== Left out: %s\n' "$title"; done
