#!/usr/bin/env bash
# Installs what the tests need and the machine lacks, where it can: as root, with apt. Elsewhere it
# names what is missing and fails.
set -euo pipefail

has() { command -v "$1" >/dev/null; }

if ! has cargo || ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
    echo "missing: Rust with rustfmt and clippy; see https://rustup.rs" >&2
    exit 1
fi

packages=()
has cc || packages+=(build-essential)
has redis-server || packages+=(redis-server)
has openssl || packages+=(openssl)
# redis-py, whose lock has to exclude ours; Debian's is seen by Debian's interpreter alone.
python3 -c 'import redis' 2>/dev/null || /usr/bin/python3 -c 'import redis' 2>/dev/null ||
    packages+=(python3-redis)
# A browser, its driver and a font, for the page of examples/booking.
has chromium || has google-chrome || packages+=(chromium fonts-dejavu-core)
has chromedriver || packages+=(chromium-driver)
# What runs the MongoDB stand-in.
if [ -z "${MONGODB_URI:-}" ] && ! has mongod; then
    has javac || packages+=(default-jdk-headless)
    has mvn || packages+=(maven)
fi

if [ ${#packages[@]} = 0 ]; then
    echo "nothing is missing"
    exit
fi
if [ "$(id -u)" != 0 ] || ! has apt-get; then
    echo "missing, by their names in Debian: ${packages[*]}" >&2
    if has apt-get; then echo "install them: sudo apt-get install ${packages[*]}" >&2; fi
    exit 1
fi
echo "installing ${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
