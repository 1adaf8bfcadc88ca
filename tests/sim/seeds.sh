#!/bin/sh
# Simulated hours under faults: cases (cases/*.txt), and seeds that nobody has seen yet.
#
#   SIM_SEEDS   how many others (default: 3)
#   SIM_FIRST   the first of them (default: from the date, so that each day looks somewhere else)
#
# A seed that fails is printed with its options; ballast-sim --record makes a case of it.
set -eu

sim=${BUILD_DIR:-build}/ballast-sim
status=0

# run OPTION...: shows the last events only when something is broken.
run() {
	if ! output=$("$sim" "$@" 2>&1); then
		status=1
		echo "$output" | tail -n 120
		echo "FAILED: ballast-sim $*"
	else
		echo "$output" | grep -e '^seed ' -e ' seeds, ' | tail -n 1
	fi
}

for case in "$(dirname "$0")"/cases/*.txt; do
	run --play "$case"
done

first=${SIM_FIRST:-$(date +%Y%m%d)00}
run --seed "$first" --seeds "${SIM_SEEDS:-3}" --hours 0.4 --vms 8
run --seed "$first" --seeds 1 --hours 0.4 --memory
run --seed "$first" --seeds 1 --hours 0.25 --tls
exit $status
