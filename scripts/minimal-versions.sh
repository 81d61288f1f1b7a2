#!/usr/bin/env bash
# Checks the published crates with the oldest dependencies that their manifests allow:
#   scripts/minimal-versions.sh [+TOOLCHAIN]
# Needs a nightly toolchain, whose resolver has the option. The packages stand in a workspace of their
# own without dev-dependencies, so the examples and tests raise no version.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

crates=(cache-lock cache-lock-macros cache-lock-runtime)
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
home=$PWD/target/minimal-versions
cache=$home/target
mkdir -p "$home"
find "$home" -mindepth 1 -maxdepth 1 ! -path "$cache" -exec rm -r {} +

cargo package --quiet --no-verify --allow-dirty "${crates[@]/#/--package=}"
members=()
for crate in "${crates[@]}"; do
    tar -xf "target/package/$crate-$version.crate" -C "$home"
    members+=("\"$crate-$version\"")
    manifest=$home/$crate-$version/Cargo.toml
    awk '/^\[/ { left_out = /^\[(.*\.)?dev-dependencies/ } !left_out' "$manifest" >"$manifest.new"
    mv "$manifest.new" "$manifest"
    rm -f "$home/$crate-$version"/{Cargo.lock,rust-toolchain.toml}
done
cat >"$home/Cargo.toml" <<MANIFEST
[workspace]
resolver = "3"
members = [$(IFS=,; echo "${members[*]}")]

[patch.crates-io]
cache-lock-macros = { path = "cache-lock-macros-$version" }
cache-lock-runtime = { path = "cache-lock-runtime-$version" }
MANIFEST

cd "$home"
cargo +nightly update --quiet -Z direct-minimal-versions
cargo ${1:+"$1"} check --workspace --lib --all-features --target-dir "$cache"
