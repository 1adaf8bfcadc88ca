#!/bin/sh
# `ballast sandbox` beyond its plain run: outages, ends of all kinds, other numbers of VMs, its output and exit statuses.
# Most runs go side by side, each in its own corner of 127.0.0.0/8.
set -u

ballast=${BALLAST:?the program to test}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work/tmp"
mkdir "$TMPDIR"
failures=0

fail() {
	echo "sandbox: $*" >&2
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

# check NAME STATUS [expression...]: how it ended. With STATUS 0 the report must be good.
check() {
	name=$1
	wanted=$2
	shift 2
	status=$(cat "$work/$name.status")
	if [ "$status" -ne "$wanted" ]; then
		fail "$name: exit status $status instead of $wanted"
	elif [ "$wanted" -ne 0 ] || node tests/e2e/sandbox_report.js "$work/$name.json" "$@"; then
		return
	else
		fail "$name: report"
	fi
	sed 's/.*"mismatches"/"mismatches"/' "$work/$name.json" | cut -c 1-2000 >&2
	tail -n 20 "$work/$name.events" >&2
}

# children PID: the agents of a sandbox.
children() {
	cat "/proc/$1/task/$1/children"
}

# ---- side by side ----

six='--vms 6 --duration 40s --speed 4 --seed 7'
start plugin $six --outage plugin@10s+10s
start monitor $six --outage monitor:2@10s+10s
start api $six --outage api@10s+10s
start all $six --seed 2 --outage plugin@2s+3s --outage plugin@4s+3s --outage monitor:5@14s+1s --outage api@23s+2s
start stopped $six --seed 3 --stop-agent-at 25s
start one --vms 1 --nodes 1 --duration 16s
start many --vms 13 --nodes 26 --duration 30s --seed 11
start slow --vms 6 --nodes 2 --duration 26s --speed 1
start fast --vms 9 --nodes 1 --duration 40s --speed 20

"$ballast" sandbox --duration 40s --report json >"$work/killed.json" 2>"$work/killed.events" &
killed=$!
"$ballast" sandbox --duration 40s --agent-log "$work/agents" >"$work/text" 2>"$work/text.events" &
interrupted=$!
sleep 12
agents=$(children "$killed")
kill -KILL ${agents%% *}
wait "$killed"
status=$?
[ "$status" -eq 1 ] || fail "an agent was killed: exit status $status"
grep -q '"mismatches":\["the agent of node-[ab] ended by itself: signal 9"\]' "$work/killed.json" ||
	fail "a killed agent isn't reported: $(cat "$work/killed.json")"
kept=$(sed -n 's/.*configuration and logs are in //p' "$work/killed.events")
[ -s "$kept/config.json" ] && [ -s "$kept/node-a.log" ] && [ -s "$kept/node-b.log" ] ||
	fail "a failed run doesn't keep its files"
rm -rf "$kept"

agents=$(children "$interrupted")
kill -INT "$interrupted"
wait "$interrupted"
status=$?
[ "$status" -eq 0 ] || fail "Ctrl-C: exit status $status: $(cat "$work/text")"
for agent in $agents; do
	kill -0 "$agent" 2>/dev/null && fail "an agent outlives the sandbox"
done
grep -q '^oak *held ' "$work/text" || fail "no table in the text report"
grep -q '^Everything went as the workload states it.$' "$work/text" || fail "no verdict in the text report"
grep -q '^ *[0-9.]*s oak: patched 1 CU → [0-9] CU$' "$work/text.events" || fail "no line for a patch"
grep -q '^ *[0-9.]*s phase 2: ' "$work/text.events" || fail "no line for a phase"
grep -q '"logger":"autoscaler-agent' "$work/agents" || fail "--agent-log has no agent's log"

wait
check plugin 0 'r.vms.every((vm) => vm.judged)' 'r.monitor.connections === 6'
check monitor 0 'r.vms.every((vm) => vm.judged)' 'r.monitor.connections >= 7'
check api 0 'r.vms.every((vm) => vm.judged)' 'r.api.watches >= 6'
check all 0 'r.vms.every((vm) => vm.judged)' 'r.monitor.connections >= 7' 'r.api.watches >= 6'
grep -q 'outage: scheduler plugin is away$' "$work/all.events" || fail "no line for an outage"
[ "$(grep -c 'outage: scheduler plugin' "$work/all.events")" -eq 2 ] || fail "outages that overlap aren't one"
check stopped 0 'r.durationSeconds >= 25 && r.durationSeconds < 27' 'r.phases === 4'
check one 0 'r.vms.length === 1' 'r.ignoredVMs === 1'
check many 0 'r.vms.length === 13' 'r.ignoredVMs === 49'
check slow 0 'r.phases === 1'
check fast 0 'r.vms.length === 9' 'r.vms[8].workload === "held"'

# ---- many VMs: memory ----

start large --vms 200 --nodes 5 --duration 20s
wait
check large 0 'r.vms.length === 200' 'r.monitor.connections >= 200'

leftover=$(ls "$TMPDIR")
[ "$failures" -gt 0 ] || [ -z "$leftover" ] || fail "left behind: $leftover"

# ---- bad usage ----

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

refuse '--vms: "0" is no number from 1 to 500' --vms 0
refuse '--duration: at speed 1 a run takes at least 26.0 s' --duration 20s --speed 1
refuse '"disk" is none of plugin, api, monitor:N' --outage disk@1s+1s
refuse "isn't PEER@START+LENGTH" --outage plugin@1s
refuse 'an outage must be over 8.0 s before the end' --duration 40s --outage plugin@30s+3s
refuse 'there is no VM 3, only 2' --vms 2 --outage monitor:3@1s+1s
refuse 'did you mean --duration?' --durtion 5s
refuse 'unexpected argument "extra"' extra

"$ballast" sandbox --help >"$work/out" || fail "--help: exit status $?"
for word in --outage PEER@START+LENGTH --stop-agent-at --agent-log takeover full-first lfc bounded; do
	grep -q -e "$word" "$work/out" || fail "--help says nothing of $word"
done

[ "$failures" -eq 0 ]
