#!/bin/sh
# An agent that writes Kubernetes Events, and one that doesn't: see agent_events.js.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

make_certificate
timeout 120 node tests/e2e/agent_events.js "$ballast" "$work" "$prefix" >"$work/out" 2>&1 &
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
