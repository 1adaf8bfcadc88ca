#!/bin/sh
# A running extender, as a process: see extender_process.js.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

make_certificate
timeout 200 node tests/e2e/extender_process.js "$ballast" "$work" "$prefix" >"$work/out" 2>&1 &
children=$!
wait "$children" || fail "exit status $?:
$(cat "$work/out")"
[ "$failures" -eq 0 ]
