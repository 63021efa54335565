#!/bin/sh
# Installs what the build, the tests and the demo need and this machine lacks, and what it is told beyond
# that: scripts/setup.sh [COMMAND:PACKAGE …]. Does nothing, and asks for nothing, where all of it is there.
set -eu

missing=""
need() { # command package
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

need cc build-essential
need c++ build-essential
need git git
need openssl openssl
need redis-server redis-server
need redis-benchmark redis-tools
need node nodejs
need npm npm
need tmux tmux
for further in "$@"; do
    need "${further%%:*}" "${further#*:}"
done

# The module's bindings are made with libclang at build time; libclang-cpp is another library.
if ! ldconfig -p | grep -q 'libclang\(\.so\|-[0-9]\)' &&
    [ -z "$(find /usr/lib/llvm-*/lib \( -name 'libclang.so*' -o -name 'libclang-[0-9]*.so*' \) 2>/dev/null)" ]; then
    missing="$missing libclang-dev"
fi

if [ -n "$missing" ]; then
    echo "installing:$missing"
    as_root=""
    if [ "$(id -u)" != 0 ]; then
        as_root=sudo
        if ! command -v sudo >/dev/null 2>&1; then
            echo "please install these as root:$missing" >&2
            exit 1
        fi
    fi
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "no apt-get here; please install what these Debian packages hold:$missing" >&2
        exit 1
    fi
    $as_root apt-get update -qq
    # shellcheck disable=SC2086 # several packages
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

if ! command -v cargo >/dev/null 2>&1; then
    echo "Rust 1.95 or later is missing: install it with rustup (https://rustup.rs), then call make again" >&2
    exit 1
fi
