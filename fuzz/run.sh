#!/bin/sh
# Fuzzes for so many seconds each (60) the targets named (all), from the corpus that is kept:
# `fuzz/run.sh 1800 value`. What is found on the way goes to target/found; `fuzz/keep.sh` takes it over.
set -eu
cd "$(dirname "$0")"

seconds=${1:-60}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- arguments value commands

# They would replace the flags of .cargo/config.toml, and the fuzzer would be blind.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
found=${CARGO_TARGET_DIR:-target}/found
cargo build --release --locked

for target in "$@"; do
    mkdir -p "$found/$target" "artifacts/$target"
    log=$found/$target.log
    cargo run --quiet --release --locked --bin "$target" -- \
        -max_total_time="$seconds" -max_len=4096 -len_control=5 -timeout=60 -print_final_stats=1 \
        -artifact_prefix="artifacts/$target/" "$found/$target" "corpus/$target" >"$log" 2>&1 &
    run=$!
    passed=0
    while sleep 5 && kill -0 "$run" 2>/dev/null; do
        passed=$((passed + 5))
        progress=$(sed -nE 's/^#([0-9]+).* cov: ([0-9]+).*/\1 inputs, \2 edges/p' "$log" | tail -n 1)
        echo "$target: $passed of $seconds s, ${progress:-starting}"
    done
    if ! wait "$run"; then
        tail -n 60 "$log"
        echo "$target failed; the input is in fuzz/artifacts/$target. To repeat it:" >&2
        echo "  cd fuzz && cargo run --release --bin $target -- artifacts/$target/FILE" >&2
        exit 1
    fi
    grep '^Done' "$log"
done
