#!/bin/sh
# An agent of generation A among stand-ins for its peers: see agent_2023.js. And what it needs to start at all.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

# The first variable that is missing is named.
for missing in CONFIG_PATH K8S_NODE_NAME K8S_POD_IP; do
	CONFIG_PATH=tests/data/agent/config-a.json K8S_NODE_NAME=n K8S_POD_IP=127.0.0.1 \
		env -u "$missing" "$ballast" agent >"$work/log" 2>&1
	status=$?
	[ "$status" -eq 2 ] || fail "without $missing: exit status $status instead of 2"
	grep -q "\"error\":\"missing $missing in environment\"" "$work/log" || fail "without $missing: $(cat "$work/log")"
done

make_certificate
timeout 120 node tests/e2e/agent_2023.js "$ballast" "$work" "$prefix" >"$work/out" 2>&1 &
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
