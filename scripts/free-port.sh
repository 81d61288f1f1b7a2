#!/usr/bin/env bash
# Prints a TCP port of 127.0.0.1 that nobody listens on. It lies below the ephemeral range, so that
# no outgoing connection takes it in the meantime.
set -euo pipefail
while
    port=$((10000 + RANDOM % 20000))
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null
do :; done
echo "$port"
