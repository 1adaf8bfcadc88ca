#!/bin/sh
# `ballast sandbox` in both generations, with every release of the scheduler plugin that goes with each: agents find out the
# version of its protocol and scale all the same. Runs go side by side, each in its own corner of 127.0.0.0/8.
set -u

ballast=${BALLAST:?the program to test}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work/tmp"
mkdir "$TMPDIR"
failures=0

fail() {
	echo "sandbox_generations: $*" >&2
	failures=$((failures + 1))
}

# start NAME argument...: a run in the background with a JSON report.
start() {
	name=$1
	shift
	(
		"$ballast" sandbox --report json --agent-log "$work/$name.log" "$@" >"$work/$name.json" 2>"$work/$name.events"
		echo $? >"$work/$name.status"
	) &
}

# check NAME [expression...]: it ended well, and so says its report.
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
	sed 's/.*"mismatches"/"mismatches"/' "$work/$name.json" | cut -c 1-2000 >&2
	tail -n 20 "$work/$name.events" >&2
}

# ---- the legal pairs ----

# generation, plugin, and the version that agents come to
pairs='A-v0.19-2.0 A-v0.21-2.0 A-v0.22-2.0 A-v0.25-2.0
B-v0.19-2.0 B-v0.21-2.1 B-v0.22-3.0 B-v0.25-4.0 B-v0.27-4.0 B-v0.41-5.0 B-newest-5.0'

# Four at a time: a busy machine would disturb them.
count=0
for pair in $pairs; do
	generation=${pair%%-*}
	rest=${pair#*-}
	start "$pair" --generation "$generation" --plugin-protocol "${rest%-*}" --vms 8 --duration 16s --speed 4 --seed 5
	count=$((count + 1))
	[ $((count % 4)) -ne 0 ] || wait
done
wait
start plain --generation A --vms 6 --duration 40s --speed 4 --seed 7
start node --generation A --metrics-prefix node_ --vms 8 --nodes 1 --duration 16s --seed 2
start plugin --generation A --vms 6 --duration 40s --seed 3 --outage plugin@10s+8s
start others --generation A --vms 6 --duration 40s --seed 4 --outage api@10s+5s --outage monitor:2@12s+5s
start old --plugin-protocol v0.19 --vms 6 --duration 40s --seed 6 --outage plugin@10s+8s
wait

for pair in $pairs; do
	check "$pair" "r.generation === '${pair%%-*}'" "r.scheduler.protocolVersion === '${pair##*-}'" \
		'r.vms.every((vm) => vm.judged)' 'r.vms.some((vm) => vm.workload === "lfc")' 'r.api.patches > 0'
done
for name in plain plugin others; do
	check "$name" "r.generation === 'A'" "r.scheduler.protocolVersion === '2.0'" 'r.vms.every((vm) => vm.judged)' \
		'r.vms.some((vm) => vm.deniedDownscales > 0)'
done
check node "r.generation === 'A'" 'r.vms.every((vm) => vm.judged)'
check old "r.generation === 'B'" "r.scheduler.protocolVersion === '2.0'" 'r.vms.every((vm) => vm.judged)'

# What an agent finds out, it finds out once; what it is told, it doesn't ask.
for pair in B-v0.19-2.0 B-v0.25-4.0; do
	found=$(grep -c "Found out which version of the protocol.*\"version\":\"v${pair##*-}\"" "$work/$pair.log")
	[ "$found" -ge 1 ] && [ "$found" -le 2 ] || fail "$pair: the log says $found times what was found out"
done
grep -q 'Found out which version' "$work/plain.log" && fail "plain: a fixed version was found out"
grep -q '"generation":"A","pluginProtocol":"2.0"' "$work/plain.log" || fail "plain: the log doesn't say which generation"
grep -q 'LFC metrics' "$work/A-v0.19-2.0.log" && fail "A: something speaks of LFC metrics"
grep -q '"logger":"autoscaler-agent.runner.exec.plugin.client","msg":"Scheduler request failed"' "$work/B-v0.22-3.0.log" &&
	fail "B-v0.22: a step down counts as a failed request"

leftover=$(ls "$TMPDIR")
[ "$failures" -gt 0 ] || [ -z "$leftover" ] || fail "left behind: $leftover"

# ---- pairs that don't go together ----

# refuse TEXT argument...
refuse() {
	text=$1
	shift
	"$ballast" sandbox "$@" >"$work/out" 2>"$work/errors"
	status=$?
	[ "$status" -eq 2 ] || fail "$*: exit status $status instead of 2"
	grep -q -F -e "$text" "$work/errors" || fail "$*: $(cat "$work/errors")"
	[ -s "$work/out" ] && fail "$*: writes to standard output"
}

for plugin in v0.27 v0.41 newest; do
	refuse 'an agent of generation A learns its compute unit from the plugin' --generation A --plugin-protocol $plugin
done
refuse '"v0.20" is none of v0.19,' --plugin-protocol v0.20
refuse 'generation B knows metrics that begin with host_ only' --metrics-prefix node_
refuse '"x_" is none of host_, node_' --generation A --metrics-prefix x_
refuse '"C"' --generation C

"$ballast" sandbox --help >"$work/out" || fail "--help: exit status $?"
for word in --generation --plugin-protocol --metrics-prefix 'v0.26 and v0.27   refused  4.0' 'v0.7 to v0.19     2.0      2.0'; do
	grep -q -F -e "$word" "$work/out" || fail "--help says nothing of $word"
done

[ "$failures" -eq 0 ]
