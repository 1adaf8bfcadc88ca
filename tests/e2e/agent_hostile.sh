#!/bin/sh
# An agent among peers that misbehave: see agent_hostile.js.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

make_certificate
no_memory=
! ldd "$ballast" 2>/dev/null | grep -q 'lib[a-z]*san' || no_memory=no-memory
timeout 120 node --max-old-space-size=400 tests/e2e/agent_hostile.js "$ballast" "$work" "$prefix" $no_memory >"$work/out" 2>&1 &
children=$!
wait "$children"
status=$?
[ "$status" -le 1 ] || kill -9 "$(cat "$work/agent.pid")" # it died without a chance to end the agent
if [ "$status" -ne 0 ]; then
	cat "$work/out"
	fail "exit status $status; the end of the agent's log:"
	tail -n 5 "$work/agent.log" >&2
fi
[ "$failures" -eq 0 ]
