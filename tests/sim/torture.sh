#!/bin/sh
# Each of the first allocations and socket calls of an agent, and of an extender, fails once, in a run of its own, and a
# sample of those behind.
# Everything must be as it should be again, nothing may leak, no process may crash.
#
#   SIM_POINTS   how many of the first ones (default: a few; 2000 are looked at before a release)
set -eu

sim=${BUILD_DIR:-build}/ballast-sim
points=${SIM_POINTS:-60}

status=0
# torture KIND OPTION...
torture() {
	kind=$1
	shift
	output=$("$sim" --faults none --hours 0.01 --nodes 1 --torture "$kind" --points "$points" "$@") || status=1
	echo "$output" | tail -n "$([ $status = 0 ] && echo 1 || echo 60)"
}

for kind in allocations calls; do
	torture $kind --vms 2 --pods 0
	torture $kind --vms 0 --pods 8
done
exit $status
