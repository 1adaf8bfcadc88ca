#!/bin/sh
# Simulated hours under faults: seeds that once found something, one line of options each in seeds.txt, and others.
#
#   SIM_SEEDS   how many others (default: 3)
#   SIM_FIRST   the first of them (default: from the date, so that each day looks somewhere else)
#
# A seed that fails is printed with its options; add it to seeds.txt with a word on what it found.
set -eu

sim=${BUILD_DIR:-build}/ballast-sim
list=$(dirname "$0")/seeds.txt
status=0

# run OPTION...: shows the last events only when something is broken.
run() {
	if ! output=$("$sim" "$@" 2>&1); then
		status=1
		echo "$output" | tail -n 120
		echo "FAILED: ballast-sim $*"
	else
		echo "$output" | tail -n 1
	fi
}

while read -r options; do
	case $options in '#'* | '') continue ;; esac
	# shellcheck disable=SC2086 # several words
	run $options
done <"$list"

first=${SIM_FIRST:-$(date +%Y%m%d)00}
run --seed "$first" --seeds "${SIM_SEEDS:-3}" --hours 0.4 --vms 8
run --seed "$first" --seeds 1 --hours 0.4 --memory
run --seed "$first" --seeds 1 --hours 0.25 --tls
exit $status
