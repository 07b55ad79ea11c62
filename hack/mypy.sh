#!/bin/sh
# Checks types. A checkout without a cache of mypy starts with the one that the last such checkout of this machine left:
# most of it is about packages, which are the same. mypy compares the hash of each file, so that nothing stale counts.
set -eu
kept=${XDG_CACHE_HOME:-$HOME/.cache}/tarsy/mypy.tar
[ ! -d .mypy_cache ] || exec .venv/bin/mypy

if [ -f "$kept" ] && ! tar -xf "$kept"; then
  rm -rf .mypy_cache
fi
.venv/bin/mypy

mkdir -p "$(dirname "$kept")"
new=$(mktemp "$kept.XXXXXX")
trap 'rm -f "$new"' EXIT
tar -cf "$new" .mypy_cache
mv "$new" "$kept"
