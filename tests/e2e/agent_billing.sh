#!/bin/sh
# Agents and what becomes of their billing events: see agent_billing.js.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

make_certificate
timeout 120 node tests/e2e/agent_billing.js "$ballast" "$work" "$prefix" >"$work/out" 2>&1 &
children=$!
wait "$children"
status=$?
[ "$status" -eq 0 ] || fail "exit status $status: $(cat "$work/out")"
[ "$failures" -eq 0 ]
