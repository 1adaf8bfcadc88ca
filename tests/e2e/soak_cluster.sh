#!/bin/sh
# Lists of 5,000 VirtualMachines, over and over, leave nothing behind in the agent: see agent_soak.js.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

make_certificate
no_memory=
! ldd "$ballast" 2>/dev/null | grep -q 'lib[a-z]*san' || no_memory=no-memory
ulimit -n 16384 2>/dev/null || ulimit -n "$(ulimit -Hn)"
timeout 200 node --max-old-space-size=1000 tests/e2e/agent_soak.js "$ballast" "$work" "$prefix" cluster $no_memory >"$work/out" 2>&1 &
children=$!
wait "$children"
status=$?
[ "$status" -le 1 ] || kill -9 "$(cat "$work/agent.pid")" # it died without a chance to end the agent
cat "$work/out"
if [ "$status" -ne 0 ]; then
	fail "exit status $status; the end of the agent's log:"
	tail -n 5 "$work/agent.log" | cut -c 1-1000 >&2
fi
[ "$failures" -eq 0 ]
