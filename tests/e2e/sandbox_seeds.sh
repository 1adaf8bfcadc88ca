#!/bin/sh
# `ballast sandbox` with seeds 1 to 20: every VM gets the size that the workload states, among them a denied downscale that
# succeeds later. Ten at a time: each takes little CPU, but a machine that is busy all the time would disturb them.
set -u

ballast=${BALLAST:?the program to test}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work"
failures=0

run() {
	"$ballast" sandbox --vms 6 --duration 40s --speed 4 --seed "$1" --report json --agent-log "$work/$1.log" \
		>"$work/$1.json" 2>"$work/$1.events"
	echo $? >"$work/$1.status"
}

check() {
	[ "$(cat "$work/$1.status")" -eq 0 ] &&
		node tests/e2e/sandbox_report.js "$work/$1.json" 'r.seed === '"$1" 'r.vms.length === 6' 'r.phases === 5' \
			'r.vms.every((vm) => vm.judged)' 'sum("upscales") >= 10' 'sum("downscales") >= 10' \
			'r.vms[1].deniedDownscales >= 1 && r.vms[1].downscales >= 1' 'r.scheduler.denials >= 1' \
			'r.monitor.connections >= 6' 'r.api.lists >= 4 && r.api.watches >= 4' 'r.ignoredVMs === 3' \
			'r.api.patches >= sum("patches")' 'r.agent.maxResidentKiB > 0 && r.agent.cpuSeconds > 0' && return
	failures=$((failures + 1))
	echo "seed $1: exit status $(cat "$work/$1.status")" >&2
	sed 's/.*"mismatches"/"mismatches"/' "$work/$1.json" | cut -c 1-2000 >&2
	tail -n 20 "$work/$1.events" >&2
}

for first in 1 11; do
	for seed in $(seq $first $((first + 9))); do
		run "$seed" &
	done
	wait
done
for seed in $(seq 1 20); do
	check "$seed"
done
# What went wrong keeps its files; nothing else does.
leftover=$(find "$work" -maxdepth 1 -name 'ballast-sandbox-*')
if [ "$failures" -eq 0 ] && [ -n "$leftover" ]; then
	echo "left behind: $leftover" >&2
	failures=$((failures + 1))
fi
[ "$failures" -eq 0 ]
