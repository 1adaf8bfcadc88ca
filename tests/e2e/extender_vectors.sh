#!/bin/sh
# A running extender, the specification's vectors: see extender_vectors.js.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

make_certificate
timeout 200 node tests/e2e/extender_vectors.js "$ballast" "$work" "$prefix" >"$work/out" 2>&1 &
children=$!
wait "$children" || fail "exit status $?:
$(cat "$work/out")"
[ "$failures" -eq 0 ]
