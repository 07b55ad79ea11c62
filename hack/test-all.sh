#!/usr/bin/env bash
# Runs tests side by side and then, if a few failed, those again, one at a time: a machine that others use too may take
# the processor away for seconds. The second run says how this ends; a test that needed it is a bug of the test.
# PYTEST is the command, IN_PARALLEL its options for the first run; the arguments are for both.
set -euo pipefail

read -ra pytest <<<"$PYTEST"
read -ra in_parallel <<<"$IN_PARALLEL"
list=$(mktemp)
trap 'rm -f "$list"' EXIT

status=0
"${pytest[@]}" "${in_parallel[@]}" "--failed-to=$list" "$@" || status=$?
mapfile -t failed <"$list"
# 1: tests failed. The list is empty where that was no matter of single tests (tests/second_chance.py).
[[ $status -eq 1 && ${#failed[@]} -gt 0 ]] || exit "$status"

printf '\n%s\n' "== ${#failed[@]} failed beside others; run again alone. Each is to be mended, whatever it does now:"
printf '   %s\n' "${failed[@]}"
status=0
"${pytest[@]}" "$@" "${failed[@]}" || status=$?
exit "$status"
