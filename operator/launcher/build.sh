#!/bin/sh
# Compiles the launcher: build.sh PROGRAM. CC is the compiler (cc); its C library must come as an archive, too.
set -eu
new=$1.$$
trap 'rm -f "$new"' EXIT
${CC:-cc} -std=gnu17 -Os -static -s -Wall -Wextra -Werror -fstack-protector-strong -o "$new" "$(dirname "$0")/launcher.c"
mv "$new" "$1"
