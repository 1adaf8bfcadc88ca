#!/bin/sh
# The agent with all three kinds of clients: see report_agent.js.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

make_certificate
timeout 120 node tests/e2e/report_agent.js "$ballast" "$work" "$prefix" >"$work/out" 2>&1 &
children=$!
wait "$children"
status=$?
if [ "$status" -ne 0 ]; then
	fail "exit status $status: $(cat "$work/out"); the end of the agent's log:"
	tail -n 5 "$work/agent.log" >&2
fi
[ "$failures" -eq 0 ]
