#!/usr/bin/env bash
# Runs the module's tests on each server that scripts/fetch-servers.sh has fetched, and tells at the end
# what ran on which and for how long.
set -euo pipefail
cd "$(dirname "$0")/.."

shopt -s nullglob
servers=(target/servers/*/redis-server)
if [ ${#servers[@]} = 0 ]; then
    echo "only the machine's own Redis was tested: make test-all fetches the others"
    exit
fi

# What mailboxes and calls cost in memory is the module's; the machine's own Redis has shown it at full length.
export MAILRL_TEST_MAILBOXES=${MAILRL_TEST_MAILBOXES:-20000} MAILRL_TEST_CALLS=${MAILRL_TEST_CALLS:-100000}

table=""
for server in "${servers[@]}"; do
    name=$(basename "$(dirname "$server")")
    version=$("$server" --version | grep -o 'v=[^ ]*')
    echo
    echo "== the module's tests on $name ($version)"
    started=$SECONDS
    MAILRL_REDIS_SERVER=$PWD/$server cargo test --locked -p mailrl || {
        echo "the module's tests failed on $name ($version)" >&2
        exit 1
    }
    table+=$(printf '  %-12s %-10s %4d s' "$name" "${version#v=}" $((SECONDS - started)))$'\n'
done
printf '\nthe module'\''s tests passed on:\n%s' "$table"
