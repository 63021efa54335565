#!/bin/sh
# Takes into the corpus what fuzzing has found, and leaves out what adds nothing.
set -eu
cd "$(dirname "$0")"

unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
found=${CARGO_TARGET_DIR:-target}/found
cargo build --release --locked

for target in arguments value commands; do
    mkdir -p "corpus/$target" "$found/$target"
    kept=$(mktemp -d)
    cargo run --quiet --release --locked --bin "$target" -- \
        -set_cover_merge=1 -max_len=4096 "$kept" "corpus/$target" "$found/$target" 2>&1 | tail -n 1
    rm -r "corpus/$target"
    mv "$kept" "corpus/$target"
    chmod 755 "corpus/$target"
done
du -sh --apparent-size corpus/*
