#!/bin/sh
# Each of the first allocations and socket calls of an agent, and of the extender, fails once, and a sample of those behind;
# with TLS a sample of all. Everything must be as it should be again, nothing may leak, no process may crash.
#
#   SIM_POINTS   how many of the first ones (default: 2000)
set -eu

sim=${BUILD_DIR:-build}/ballast-sim
points=${SIM_POINTS:-2000}
status=0

# torture OPTION...
torture() {
	for kind in allocations calls; do
		if output=$("$sim" --faults none --hours 0.01 --nodes 1 --torture $kind "$@" 2>&1); then
			echo "$output" | tail -n 1
		else
			status=1
			echo "$output" | tail -n 300
		fi
	done
}

torture --vms 1 --pods 0 --points "$points"
torture --vms 1 --pods 0 --tls --points 1
torture --vms 0 --pods 4 --points "$points"
torture --vms 0 --pods 4 --tls --points 1
exit $status
