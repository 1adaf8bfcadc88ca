#!/bin/sh
# A running extender, requests of all sizes and paces: see extender_bodies.js.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

make_certificate
instrumented=
! ldd "$ballast" 2>/dev/null | grep -q 'lib[a-z]*san' || instrumented=instrumented
timeout 250 node tests/e2e/extender_bodies.js "$ballast" "$work" "$prefix" $instrumented >"$work/out" 2>&1 &
children=$!
wait "$children" || fail "exit status $?:
$(cat "$work/out")"
[ "$failures" -eq 0 ]
