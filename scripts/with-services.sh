#!/usr/bin/env bash
# Runs a command with a private Redis and MongoDB beside it:
#   scripts/with-services.sh cargo run --release -p seckill --features mongodb
# The command finds them in REDIS_URL and MONGODB_URI. One that the environment already names is
# used as it is. Ends with the command's exit code and stops exactly what it started.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [ $# = 0 ]; then
    echo "usage: $0 COMMAND [ARGUMENT...]" >&2
    exit 2
fi

dir=$(mktemp -d)
services=()

clean_up() {
    trap '' INT TERM HUP
    # Nothing of theirs outlives this script, so there is nothing to shut down in order; a stopped
    # process too dies of KILL.
    for pid in ${services[@]+"${services[@]}"}; do
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# Starts a service in a process group of its own: a Ctrl-C of the terminal is for the command, which
# may still need its servers while it ends.
start() { # NAME COMMAND...
    local name=$1
    shift
    mkdir -p "$dir/$name"
    set -m
    "$@" >"$dir/$name.out" 2>"$dir/$name.err" </dev/null &
    started=$!
    services+=("$started")
    set +m
}

alive() { kill -0 "$1" 2>/dev/null; }

# Waits until a check succeeds; fails when the service has ended, or after `seconds`.
ready() { # PID SECONDS CHECK...
    local pid=$1 deadline=$((SECONDS + $2))
    shift 2
    until "$@"; do
        if ! alive "$pid" || ((SECONDS >= deadline)); then return 1; fi
        sleep 0.05
    done
}

fail() { # NAME
    echo "with-services: $1 did not start:" >&2
    tail -n 20 "$dir/$1.out" "$dir/$1.err" >&2
    exit 1
}

# Whether the server on this port is the process that we started, and not one that took the port
# just before it.
redis_answers() { # PORT PID
    local line
    { exec 3<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
    printf 'INFO server\r\nQUIT\r\n' >&3
    while IFS= read -r -t 5 line <&3; do
        if [ "$line" = "process_id:$2"$'\r' ]; then
            exec 3<&-
            return 0
        fi
    done
    exec 3<&-
    return 1
}

start_redis() {
    if ! command -v redis-server >/dev/null; then
        echo "with-services: redis-server is missing: install it (Debian: redis-server), or set REDIS_URL" >&2
        exit 1
    fi
    local port
    for _ in 1 2 3 4 5; do
        port=$("$scripts/free-port.sh")
        start redis redis-server --bind 127.0.0.1 --port "$port" \
            --save '' --appendonly no --dir "$dir/redis"
        if ready "$started" 30 redis_answers "$port" "$started"; then
            export REDIS_URL=redis://127.0.0.1:$port/
            return
        fi
    done
    fail redis
}

# The first line that the service has printed, once it is complete.
mongodb_uri() {
    local uri
    read -r uri <"$dir/mongodb.out" && echo "$uri"
}

mongodb_listens() {
    local uri
    uri=$(mongodb_uri 2>/dev/null) && (: <"/dev/tcp/127.0.0.1/${uri##*:}") 2>/dev/null
}

start_mongodb() {
    for _ in 1 2 3; do
        start mongodb "$scripts/mongodb.sh" "$dir/mongodb"
        # The first run of the stand-in downloads it.
        if ready "$started" 300 mongodb_listens; then
            MONGODB_URI=$(mongodb_uri)
            export MONGODB_URI
            return
        fi
    done
    fail mongodb
}

[ -n "${REDIS_URL:-}" ] || start_redis
[ -n "${MONGODB_URI:-}" ] || start_mongodb

# From here on a signal is the command's, and this script ends when the command has.
command=
interrupted=
forward() { # SIGNAL EXIT_CODE
    interrupted=$2
    if [ -n "$command" ]; then kill -"$1" -- "$command" 2>/dev/null || true; fi
}
trap 'forward INT 130' INT
trap 'forward TERM 143' TERM
trap 'forward HUP 129' HUP

# In the background, so that this script handles a signal at once. Away from a terminal the command
# gets a process group, so that a signal reaches its children too; on one it stays in ours, where it
# may read and where Ctrl-C finds it, and must not ignore that as background processes do.
[ -t 0 ] || set -m
(
    trap - INT QUIT
    exec "$@"
) <&0 &
pid=$!
set +m
if [ -t 0 ]; then command=$pid; else command=-$pid; fi
if [ -n "$interrupted" ]; then kill -TERM -- "$command"; fi

# A signal ends `wait` before the command has ended. To wait in the signal's trap instead can hang.
while
    status=0
    wait "$pid" || status=$?
    [ -n "$interrupted" ] && alive "$pid"
do :; done
exit "${interrupted:-$status}"
