#!/bin/sh
# What the agents of a sandbox bill: the sums, with the receiver away in the middle, at the end, and for too long.
set -u
cd "$(dirname "$0")/../.." || exit 1

ballast=${BALLAST:?the program to test}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work/tmp"
mkdir "$TMPDIR"
failures=0

fail() {
	echo "sandbox_billing: $*" >&2
	failures=$((failures + 1))
}

# start NAME argument...: a run in the background with a JSON report.
start() {
	name=$1
	shift
	(
		"$ballast" sandbox --report json "$@" >"$work/$name.json" 2>"$work/$name.events"
		echo $? >"$work/$name.status"
	) &
}

# check NAME [expression...]: it ended well, and the report is good.
check() {
	name=$1
	shift
	status=$(cat "$work/$name.status")
	if [ "$status" -ne 0 ]; then
		fail "$name: exit status $status"
	elif node tests/e2e/sandbox_report.js "$work/$name.json" "$@"; then
		return
	else
		fail "$name: report"
	fi
	sed 's/.*"billing"/"billing"/' "$work/$name.json" | cut -c 1-3000 >&2
	tail -n 20 "$work/$name.events" >&2
}

four='--vms 4 --duration 40s --speed 4'
start plain $four --events
start middle $four --outage receiver@10s+10s
start end $four --stop-agent-at 25s --outage receiver@20s+10s
start short $four --stop-agent-at 25s --grace 2s --outage receiver@20s+10s
start two --vms 6 --duration 40s --speed 4 --seed 5 --outage receiver@4s+3s --outage receiver@12s+6s --outage api@20s+3s
start slow --vms 3 --nodes 1 --duration 30s --speed 1
wait

all='r.billing.lost === 0 && r.billing.duplicates === 0'
check plain "$all" 'r.billing.vms.length === 5' 'r.billing.events >= 60' 'r.billing.scalingEvents > 20' \
	'r.billing.billedCpuSeconds > 0.85 * r.billing.expectedCpuSeconds' \
	'r.billing.billedCpuSeconds < r.billing.expectedCpuSeconds + 1' \
	'r.billing.vms.every((vm) => vm.billedActiveSeconds >= 35 && vm.billedActiveSeconds <= 41)'
check middle "$all" 'r.billing.events >= 60' 'r.outages[0].peer === "receiver"'
check end "$all" 'r.billing.events >= 40' 'r.durationSeconds < 26'
check two 'r.billing.lost === 0' 'r.billing.vms.length === 7'
check slow "$all" 'r.billing.events === 16 || r.billing.events === 8'

grep -q '^ *[0-9.]*s billed to ep-pine: [0-9]* effective_compute_seconds, 20.*Z to 20.*Z$' "$work/plain.events" ||
	fail "--events doesn't show what is billed"
grep -q '^ *[0-9.]*s scaling event of ep-[a-z]*: actual, [0-9.]* CU to [0-9.]* CU$' "$work/plain.events" ||
	fail "--events doesn't show scaling events"
grep -q 'billed to' "$work/middle.events" && fail "events are shown without --events"
grep -q 'outage: event receiver is away$' "$work/middle.events" || fail "no line for the receiver's outage"
grep -q '^ *30.*outage: event receiver is back$' "$work/end.events" || fail "the receiver doesn't come back after the end"

# An outage that the grace period doesn't outlast: what is lost is found.
[ "$(cat "$work/short.status")" -eq 1 ] || fail "lost events: exit status $(cat "$work/short.status")"
grep -q '"mismatches":\["billing: [0-9]* events were lost","billing of pine: [0-9]* CPU-seconds were billed, ' \
	"$work/short.json" || fail "lost events: $(cat "$work/short.json")"
rm -rf "$TMPDIR"/ballast-sandbox-*
[ -z "$(ls "$TMPDIR")" ] || fail "left behind: $(ls "$TMPDIR")"

"$ballast" sandbox --duration 8s --vms 1 --grace 1h1x >"$work/out" 2>"$work/errors"
[ $? -eq 2 ] && grep -q -e '--grace' "$work/errors" || fail "a grace period that is none: $(cat "$work/errors")"

[ "$failures" -eq 0 ]
