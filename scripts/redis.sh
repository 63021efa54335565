#!/usr/bin/env bash
# Starts a Redis with the module in the foreground: scripts/redis.sh MODULE [PORT]
set -eu

module=$(realpath "$1")
port=${2:-6379}
while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
    port=$((port + 1))
done

cat <<TEXT
Redis with mailrl on port $port, rolling windows; nothing is kept when it ends (Ctrl-C).

  redis-cli -p $port MAILRL.RESERVE mailrl:news@example.com 3    # one message to 3 recipients
  redis-cli -p $port MAILRL.STATUS mailrl:news@example.com       # what it has used
  redis-cli -p $port MAILRL.RELEASE mailrl:news@example.com ID   # the send failed: give it back
  redis-cli -p $port CONFIG SET mailrl.per-minute 5              # another default
  redis-cli -p $port INFO mailrl                                 # what was allowed and denied

TEXT
exec redis-server --port "$port" --bind 127.0.0.1 --save "" --appendonly no --loglevel warning \
    --maxmemory-policy noeviction --loadmodule "$module" window rolling
