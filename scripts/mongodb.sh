#!/usr/bin/env bash
# Runs a private MongoDB in the foreground, in the empty directory DIR, and prints its connection
# string: mongod if there is one, else the stand-in. The server accepts connections soon after.
set -euo pipefail
dir=${1:?usage: mongodb.sh DIR}
here=$(dirname "${BASH_SOURCE[0]}")

command -v mongod >/dev/null || exec "$here/mongodb-standin/start.sh"

port=$("$here/free-port.sh")
echo "mongodb://127.0.0.1:$port"
exec mongod --quiet --dbpath "$dir" --logpath "$dir/mongod.log" \
    --bind_ip 127.0.0.1 --port "$port" --nounixsocket
