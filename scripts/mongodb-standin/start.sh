#!/usr/bin/env bash
# Runs the MongoDB stand-in in the foreground, on a free port, and prints its connection string.
# The jars are fetched by Maven on the first run; later runs need no network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

need() {
    command -v "$1" >/dev/null && return
    echo "the MongoDB stand-in needs $2: install it, or mongod, or set MONGODB_URI" >&2
    exit 1
}

# The copy of pom.xml is written last: it tells a complete lib/ of these versions from any other.
fetched() { cmp -s pom.xml lib/pom.xml; }

fetch() {
    need mvn "Maven (Debian: maven)"
    rm -rf lib
    mvn --quiet --batch-mode dependency:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory=lib >&2
    cp pom.xml lib/pom.xml
}

need javac "a JDK, 11 or newer (Debian: default-jdk-headless)"
if ! fetched; then
    # Test runs that start at once fetch once. Without flock (macOS) they may fetch twice.
    exec 9<pom.xml
    if command -v flock >/dev/null; then flock 9; fi
    fetched || fetch
    exec 9<&-
fi
exec java -Xmx512m -XX:+UseSerialGC -cp 'lib/*' MongoStandIn.java 0
