#!/bin/sh
# `ballast sandbox --pods`: the real extender with a stand-in kube-scheduler, disks and a reservation controller. Runs go side by side.
set -u

ballast=${BALLAST:?the program to test}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work/tmp"
mkdir "$TMPDIR"
failures=0

fail() {
	echo "sandbox_pods: $*" >&2
	failures=$((failures + 1))
}

# start NAME argument...: a run in the background with a JSON report.
start() {
	name=$1
	shift
	(
		"$ballast" sandbox --report json --speed 4 "$@" >"$work/$name.json" 2>"$work/$name.events"
		echo $? >"$work/$name.status"
	) &
}

# check NAME [expression...]: it ended well, and its report is good.
check() {
	name=$1
	shift
	status=$(cat "$work/$name.status")
	[ "$status" -eq 0 ] || fail "$name: exit status $status"
	node tests/e2e/sandbox_report.js "$work/$name.json" "$@" && [ "$status" -eq 0 ] && return
	fail "$name: report"
	sed 's/.*"mismatches"/"mismatches"/' "$work/$name.json" | cut -c 1-2000 >&2
	tail -n 20 "$work/$name.events" >&2
}

everything='r.pods.every((pod) => pod.judged)'

start plain --nodes 5 --pods 12 --duration 40s --seed 3
start light --nodes 5 --pods 12 --duration 40s --seed 3 --faults light
start heavy --vms 0 --nodes 4 --pods 16 --duration 40s --seed 5 --faults heavy
start waiting --vms 0 --nodes 5 --pods 12 --duration 20s --seed 3 --wait-for-reservation 2s
start names --vms 0 --nodes 6 --pods 20 --duration 20s --seed 8 --node-names
start one --vms 0 --nodes 1 --pods 16 --duration 20s --seed 9
start outages --vms 0 --nodes 4 --pods 16 --duration 40s --seed 7 --outage extender@2s+6s --outage api@12s+2s
"$ballast" sandbox --vms 0 --pods 12 --duration 12s >"$work/text" 2>"$work/text.events" || fail "text: exit status $?"
"$ballast" sandbox --vms 0 --pods 8 --duration 30s --report json >"$work/killed.json" 2>"$work/killed.events" &
killed=$!
sleep 5
kill -KILL $(cat "/proc/$killed/task/$killed/children")
wait "$killed"
status=$?
[ "$status" -eq 1 ] || fail "the extender was killed: exit status $status"
grep -q '"the extender ended by itself: signal 9' "$work/killed.json" || fail "a killed extender isn't reported"
kept=$(sed -n 's/.*configuration and logs are in //p' "$work/killed.events")
[ -s "$kept/extender.log" ] || fail "a failed run doesn't keep the extender's log"
rm -rf "$kept"
wait

check plain "$everything" 'r.pods.length === 12' 'r.vms.length === 6' 'r.faults.length === 0' \
	'r.capacity.refusedVolumes === 0' 'r.placement.failedFilterCalls === 0' 'r.extender.restarts === 0' \
	'r.placement.podsPerMinute > 0' 'r.pods.some((pod) => pod.filterCalls >= 2 && pod.node !== null)'
check light "$everything" 'r.faults.length > 3'
check heavy 'r.faults.some((fault) => fault.kind === "extender-killed")' 'r.extender.restarts > 0'
# Whoever fits is bound after one call, even one that finds an old reservation; others are asked for again and again.
check waiting "$everything" 'r.pods.every((pod) => pod.node === null ? pod.filterCalls > 1 : pod.filterCalls === 1)'
check names "$everything" 'r.capacity.refusedVolumes === 0'
check one 'r.pods.every((pod) => pod.node === null || pod.node === "node-a")'
check outages 'r.extender.restarts === 1' 'r.outages.length === 2' 'r.placement.failedFilterCalls > 0'
for words in '^leftover-1 .* bound' '^too-large-1 .* pending' 'pods per minute' '0 promised twice' '^extender '; do
	grep -q -e "$words" "$work/text" || fail "the table says nothing of $words: $(cat "$work/text")"
done
leftover=$(ls "$TMPDIR")
[ "$failures" -gt 0 ] || [ -z "$leftover" ] || fail "left behind: $leftover"

[ "$failures" -eq 0 ]
